"""Lists a project's members for its managers, with what they have done and what bars them, a page at a time."""

from dataclasses import dataclass

from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce

from annotator.models import Exclusion, Guideline, Membership, Project, Role, Tally

_ANNOTATES = Q(role=Role.ANNOTATOR)


@dataclass(frozen=True)
class Numbers:
    """How many members there are, by role, and how many of them get no task at present, or have to read first."""

    annotators: int
    reviewers: int
    managers: int
    paused: int
    unread: int


def members_of(project: Project) -> QuerySet[Membership]:
    """Returns the members by user name, each with `done`, `excluded` and `unread`."""
    theirs = {"annotator": OuterRef("user"), "project": OuterRef("project")}
    done = Subquery(Tally.objects.filter(**theirs).values("done"))
    rows = project.memberships.select_related("user", "project").order_by("user__username")
    return rows.annotate(
        done=Coalesce(done, 0),
        excluded=Exists(Exclusion.objects.filter(**theirs)),
        unread=_ANNOTATES & Q(acknowledged_version__lt=Coalesce(Subquery(_versions(project)[:1]), Value(0))),
    )


def _versions(project: Project) -> QuerySet[Guideline, int]:
    """Returns the versions of the guidelines, the one in force first."""
    return project.guidelines.order_by("-version").values_list("version", flat=True)


NARROWED = {
    "paused": Q(paused_at__isnull=False),
    "excluded": Q(excluded=True),
    "unread": Q(unread=True),
    "untested": _ANNOTATES & Q(qualified_at=None),
    "offered": ~Q(offered_role=""),
}
"""What members can be narrowed down to, beside their role and name."""


def narrowed(rows: QuerySet[Membership], *, name: str = "", role: str = "", state: str = "") -> QuerySet[Membership]:
    """Selects members whose name contains a text, who have a role, or of whom one of NARROWED is true."""
    if name:
        rows = rows.filter(user__username__icontains=name)
    if role:
        rows = rows.filter(role=role)
    return rows.filter(NARROWED[state]) if state else rows


def page(rows: QuerySet[Membership], *, after: str, size: int) -> list[Membership]:
    """Returns the first members, or those whose names come after one."""
    return list((rows.filter(user__username__gt=after) if after else rows)[:size])


def numbers(project: Project) -> Numbers:
    """Counts the members, all of them in one query."""
    roles = {f"{role}s": Count("pk", filter=Q(role=role)) for role in Role.values}
    paused = Count("pk", filter=Q(paused_at__isnull=False))
    unread = Count("pk", filter=_ANNOTATES & Q(acknowledged_version__lt=_versions(project).first() or 0))
    return Numbers(**project.memberships.aggregate(**roles, paused=paused, unread=unread))
