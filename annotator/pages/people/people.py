"""The members of a project: the list, and what managers do about one person or several."""

from typing import Any

from django.contrib import messages
from django.db.models import OuterRef, Subquery
from django.db.models.functions import Coalesce
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render, resolve_url
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.web.acting import show_refusal
from annotator.infrastructure.web.paging import page_of
from annotator.infrastructure.web.query_parameters import choice_in
from annotator.managing import member_actions, members, password_links, people_lists
from annotator.models import Project, Pseudonym, Role, Tally, User
from annotator.pages.people import person_charts
from annotator.pages.people.people_form import ActionForm, MemberForm, ReasonForm
from annotator.pages.rating.returning import back
from annotator.reading import access
from annotator.reading.access import user_of
from annotator.reading.pseudonyms import Naming
from annotator.stages.gold import gold_tasks
from annotator.stages.review import exclude, exclusion_preview, readmission_preview, readmit
from annotator.stages.review.exclusions import counting, people_of, person_named

PAGE = 50
STATES = {
    "paused": gettext_lazy("Paused"),
    "excluded": gettext_lazy("Excluded"),
    "unread": gettext_lazy("Has not read the guidelines"),
    "untested": gettext_lazy("Has not passed the test"),
    "offered": gettext_lazy("Has not answered an offer"),
}


@require_http_methods(["GET", "POST"])
def people(request: HttpRequest, slug: str) -> HttpResponse:
    """Lists the members; a POST does one thing to all who are chosen."""
    project = access.managed_project(user_of(request), slug)
    if request.method == "POST":
        form = ActionForm(project, request.POST)
        if form.is_valid():
            action = member_actions.ACTIONS[form.cleaned_data["action"]]
            member_actions.act(form.cleaned_data["action"], form.cleaned_data["member"], now=database_now())
            messages.success(request, str(action.done))
        else:
            messages.error(request, _("Nothing was done. Choose at least one person, and what to do."))
        return redirect(back(request) or resolve_url("people", project.slug))
    wanted = {
        "name": request.GET.get("name", "")[:150],
        "role": choice_in(request.GET, "role", Role.values),
        "state": choice_in(request.GET, "state", STATES),
    }
    after = request.GET.get("after", "")[:150]
    rows = people_lists.narrowed(people_lists.members_of(project), **wanted)
    shown = people_lists.page(rows, after=after, size=PAGE + 1)
    context = {
        "project": project,
        "rows": shown[:PAGE],
        "further": shown[PAGE - 1].user.username if len(shown) > PAGE else "",
        "first": not after,
        "wanted": wanted,
        "narrowed": any(wanted.values()),
        "numbers": people_lists.numbers(project),
        "roles": Role.choices,
        "states": STATES.items(),
        "actions": member_actions.ACTIONS.items(),
    }
    return render(request, "workspace/people.html", context)


# One person ------------------------------------------------------------------------------------------------


def _person(project: Project, naming: Naming, name: str) -> Any:
    """Returns one of the project's people by the name that the reader sees, with `pseudonym` and `done`, or 404."""
    # PostgreSQL refuses a NUL character in a query.
    if not name.isprintable():
        raise Http404
    called = {"username": name} if naming.by_name else {"pseudonyms__project": project, "pseudonyms__name": name}
    pseudonyms = Pseudonym.objects.filter(user=OuterRef("pk"), project=project)
    tallies = Tally.objects.filter(annotator=OuterRef("pk"), project=project)
    people = people_of(project).annotate(
        pseudonym=Subquery(pseudonyms.values("name")), done=Coalesce(Subquery(tallies.values("done")), 0)
    )
    return get_object_or_404(people, **called)


@require_http_methods(["GET", "POST"])
def person(request: HttpRequest, slug: str, name: str) -> HttpResponse:
    """Shows somebody's work; managers change their role and limits by a POST, reviewers see a pseudonym."""
    reader = user_of(request)
    project = (access.managed_project if request.method == "POST" else access.reviewed_project)(reader, slug)
    naming = access.naming_for(reader, project)
    user = _person(project, naming, name)
    managed = _managed(request, project, user) if naming.by_name else {}
    if managed.get("saved"):
        return redirect("person", slug, name)
    work = person_charts.work_of(project, user, done=user.done, reader=reader)
    context = {"project": project, "name": name, "pseudonym": user.pseudonym, "work": work, "manages": naming.by_name}
    wrong = bool(managed and managed["form"] and managed["form"].errors)
    stale = bool(managed and managed["form"] and managed["form"].theirs)
    status = 409 if stale else 422 if wrong else 200
    return render(request, "workspace/person.html", context | managed, status=status)


def _managed(request: HttpRequest, project: Project, user: User) -> dict[str, Any]:
    """Returns what managers see and change; a valid POST is stored, and leaves `saved`."""
    member = people_lists.members_of(project).filter(user=user).first()
    is_excluded = member is None or member.excluded  # type: ignore[attr-defined]
    exclusion = project.exclusions.filter(annotator=user).first() if is_excluded else None
    shown: dict[str, Any] = {"member": member, "exclusion": exclusion, "form": None}
    if member is None:
        if request.method == "POST":
            raise Http404
        return shown
    form = MemberForm(member, request.POST if request.method == "POST" else None)
    if form.is_valid() and form.save(by=user_of(request)):
        offered = _("%(user)s has been asked, and will manage the project after accepting.") % {"user": member.user}
        messages.success(request, offered if member.offered_role else _("Saved."))
        return {"saved": True}
    if form.is_bound:
        # The refused change was rolled back, but the object still has it.
        member.refresh_from_db()
    return shown | {
        "form": form,
        "gold": gold_tasks.standing(member),
        "runs": list(member.qualification_runs.order_by("kind", "number")),
        "no_link": password_links.why_not(user, by=user_of(request), project=project),
        "hours": password_links.HOURS,
    }


@require_POST
def dismiss(request: HttpRequest, slug: str, name: str) -> HttpResponse:
    """Ends the membership: finished work stays, and the tasks that they hold go back."""
    project = access.managed_project(user_of(request), slug)
    member = get_object_or_404(project.memberships.select_related("user", "project"), user__username=name)
    with show_refusal(request):
        members.dismiss(member)
        messages.success(
            request, _("%(name)s is no longer in the project. Their finished work is kept.") % {"name": name}
        )
        if project.webhooks.filter(made_by=member.user, active=True).exists():
            text = _("Webhooks that %(name)s has made still send events. Look at them under Settings, Webhooks.")
            messages.warning(request, text % {"name": name})
        # Whoever ends their own membership is sent where they may go.
        return redirect("home" if member.user == user_of(request) else reverse("people", args=[slug]))
    return redirect("person", slug, name)


@require_POST
def password_link(request: HttpRequest, slug: str, name: str) -> HttpResponse:
    """Makes a link by which the member chooses a new password, and shows it, only this once."""
    project = access.managed_project(user_of(request), slug)
    member = get_object_or_404(project.memberships.select_related("user"), user__username=name)
    with show_refusal(request):
        row, secret = password_links.make(member.user, by=user_of(request), project=project, now=database_now())
        link = request.build_absolute_uri(reverse("new-password", args=[secret]))
        context = {"project": project, "name": name, "link": link, "row": row}
        return render(request, "workspace/password_link.html", context)
    return redirect("person", slug, name)


# Exclusions ------------------------------------------------------------------------------------------------


@require_GET
def exclusions(request: HttpRequest, slug: str) -> HttpResponse:
    """Lists who is excluded; `find` leads to where anybody who has worked here can be excluded."""
    project = access.managed_project(user_of(request), slug)
    if wanted := request.GET.get("find", "").strip()[:150]:
        found = person_named(project, wanted)
        if found:
            return redirect("exclude-person", slug, found.username)
        messages.error(request, _("Nobody with this name has worked in this project."))
    page = page_of(request, project.exclusions.select_related("annotator", "by").order_by("-pk"), size=PAGE)
    pseudonym_of = Naming(project, by_name=False)
    page |= {"project": project, "rows": [(row, pseudonym_of(row.annotator)) for row in page["rows"]]}
    return render(request, "workspace/exclusions.html", page)


@require_http_methods(["GET", "POST"])
def exclude_person(request: HttpRequest, slug: str, name: str) -> HttpResponse:
    """Shows what would change; excludes the person once a manager confirms it with a reason."""
    project = access.managed_project(user_of(request), slug)
    user = _person(project, Naming(project, by_name=True), name)
    form = ReasonForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        reason = form.cleaned_data["reason"]
        exclude(project, user, reason=reason, by=user_of(request), now=database_now())
        # Work that still counts was too much to be taken out at once, and is left to the worker.
        if counting(project, user).exists():
            text = _("%(name)s gets no more tasks. The light worker is removing their work from the labels.")
        else:
            text = _("%(name)s is excluded, and their work no longer counts.")
        messages.success(request, text % {"name": user})
        return redirect("exclusions", slug)
    context = {
        "project": project,
        "name": name,
        "form": form,
        "exclusion": project.exclusions.filter(annotator=user, readmitted_at=None).first(),
        "foreseen": exclusion_preview(project, user),
    }
    return render(request, "workspace/exclude.html", context, status=422 if form.is_bound else 200)


@require_http_methods(["GET", "POST"])
def readmit_person(request: HttpRequest, slug: str, name: str) -> HttpResponse:
    """Shows how much would come back; readmits the person once a manager confirms it."""
    project = access.managed_project(user_of(request), slug)
    user = _person(project, Naming(project, by_name=True), name)
    if request.method == "POST":
        with show_refusal(request):
            going_on = readmit(project, user, now=database_now())
            text = _("The light worker is bringing back the work of %(name)s.") if going_on else _("%(name)s is back.")
            messages.success(request, text % {"name": user})
        return redirect(back(request) or resolve_url("exclusions", slug))
    context = {
        "project": project,
        "name": name,
        "exclusion": project.exclusions.filter(annotator=user).first(),
        "foreseen": readmission_preview(project, user),
    }
    return render(request, "workspace/readmit.html", context)
