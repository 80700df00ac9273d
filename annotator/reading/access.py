"""Fetches rows and checks access to them in one step, starting from the user. A stranger gets 404."""

from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest
from django.shortcuts import get_object_or_404
from rest_framework.request import Request

from annotator.infrastructure.db.statements import Columns, Statement
from annotator.models import Assignment, Membership, Project, QualificationRun, Role, Rubric, Task, User
from annotator.reading import assignment_rows
from annotator.reading.pseudonyms import Naming


def user_of(request: HttpRequest | Request) -> User:
    """Returns the user who asks. Doors that call this admit only logged-in users; PermissionDenied makes sure of it."""
    if not isinstance(request.user, User):
        raise PermissionDenied("Log in first.")
    return request.user


def visible_project(user: User, slug: str) -> Project:
    """Returns a project of which the user is a member in any role, or raises 404. It comes with its rubric."""
    row = _VISIBLE.row(user=user.pk, slug=slug)
    role = Role.MANAGER if user.is_superuser else row and row[-1]
    if row is None or role is None:
        raise Http404("No Project matches the given query.")
    width = len(_PROJECT.names)
    project = _PROJECT.instance(row[:width])
    project.rubric = _RUBRIC.instance(row[width:-1])
    project.__dict__["_roles"] = {user.pk: role}  # as in `_role_in`
    return project


def managed_project(user: User, slug: str) -> Project:
    """Returns a project that the user manages; its other members get 403."""
    project = visible_project(user, slug)
    if not manages(user, project):
        raise PermissionDenied("Only managers of this project can do this.")
    return project


def membership(user: User, slug: str) -> Membership:
    """Returns the user's own membership with its project. Superusers too have to be members to rate."""
    row = _MEMBERSHIP.row(user=user.pk, slug=slug)
    if row is None:
        raise Http404
    width = len(_MEMBER.names)
    member = _MEMBER.instance(row[:width])
    member.user, member.project = user, _PROJECT.instance(row[width:])
    return member


_MEMBER, _PROJECT, _RUBRIC = Columns(Membership, "m"), Columns(Project, "p"), Columns(Rubric, "r")
# Nearly every request begins with it, and building the same query with Django's takes several times as long.
_VISIBLE = Statement(f"""
SELECT {_PROJECT}, {_RUBRIC}, m.role FROM annotator_project p JOIN annotator_rubric r ON r.id = p.rubric_id
LEFT JOIN annotator_membership m ON m.project_id = p.id AND m.user_id = %(user)s
WHERE p.slug = %(slug)s AND p.deleted_at IS NULL
""")
_MEMBERSHIP = Statement(f"""
SELECT {_MEMBER}, {_PROJECT} FROM annotator_membership m JOIN annotator_project p ON p.id = m.project_id
WHERE m.user_id = %(user)s AND p.slug = %(slug)s AND p.deleted_at IS NULL
""")


def manages(user: User, project: Project) -> bool:
    """Returns whether the user manages this project."""
    return _role_in(project, user) == Role.MANAGER


def _role_in(project: Project, user: User) -> str | None:
    """Returns the user's role in the project, a superuser's being the manager's, or None for a stranger.

    The answer is kept with the instance of `project`, which every request fetches anew: a page asks in several places.
    """
    known: dict[int, str | None] = project.__dict__.setdefault("_roles", {})
    if user.pk not in known:
        member = user.memberships.filter(project=project, project__deleted_at=None)
        known[user.pk] = Role.MANAGER if user.is_superuser else member.values_list("role", flat=True).first()
    return known[user.pk]


def naming_for(user: User, project: Project) -> Naming:
    """Returns how annotators are named to this user: by user name to managers, by pseudonym to reviewers."""
    return Naming(project, by_name=manages(user, project))


def own_assignment(user: User, assignment_id: int) -> Assignment:
    """Returns an assignment of the user's while they are a member of its project. Its task comes without long texts."""
    try:
        return assignment_rows.own(user, assignment_id)
    except Assignment.DoesNotExist as stranger:
        raise Http404 from stranger


def own_qualification_run(user: User, run_id: int) -> QualificationRun:
    """Returns a run of the user's through the practice or the test, in a project that nobody has deleted."""
    runs = QualificationRun.objects.filter(member__user=user, member__project__deleted_at=None).select_related(
        "member__project__rubric"
    )
    return get_object_or_404(runs, pk=run_id)


def may_create_projects(user: User) -> bool:
    """Returns whether the user may create projects: staff and superusers may, and managers of a project."""
    return user.is_staff or user.is_superuser or user.memberships.filter(role=Role.MANAGER).exists()


def reviewed_projects(user: User) -> QuerySet[Project]:
    """Returns every project for a superuser, else those that the user manages or reviews."""
    if user.is_superuser:
        return Project.objects.standing()
    return Project.objects.standing().filter(
        memberships__user=user, memberships__role__in=[Role.MANAGER, Role.REVIEWER]
    )


def reviewed_project(user: User, slug: str) -> Project:
    """Returns one of `reviewed_projects`. Annotators get 403: they must not see each other's work."""
    project = visible_project(user, slug)
    if _role_in(project, user) not in {Role.MANAGER, Role.REVIEWER}:
        raise PermissionDenied("Only managers and reviewers of this project can see this.")
    return project


def reviewed_task(user: User, task_id: int) -> Task:
    """Returns a task of one of `reviewed_projects`; tasks that measure annotators stay unseen."""
    # From what the user can see: strangers get 404, and members without the role 403 in the next step.
    visible = Task.objects.filter(project__in=Project.objects.visible_to(user)).exclude(state=Task.State.GOLD)
    task = get_object_or_404(visible.select_related("project"), pk=task_id)
    task.project = reviewed_project(user, task.project.slug)
    return task


def managed_task(user: User, task_id: int) -> Task:
    """Returns a task of a project that the user manages; its other members get 403."""
    visible = Task.objects.filter(project__in=Project.objects.visible_to(user))
    task = get_object_or_404(visible.select_related("project"), pk=task_id)
    task.project = managed_project(user, task.project.slug)
    return task


def reviewed_assignment(user: User, assignment_id: int) -> Assignment:
    """Returns anybody's assignment in one of `reviewed_projects`."""
    visible = Assignment.objects.filter(task__project__in=Project.objects.visible_to(user))
    row = get_object_or_404(visible.select_related("task__project").only("task__project"), pk=assignment_id)
    reviewed_project(user, row.task.project.slug)
    return row
