"""Rating: the next task, its draft, and what an annotator does with it."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render, resolve_url
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST
from django_htmx.http import HttpResponseClientRedirect

from annotator import access, annotation, assignment
from annotator.access import user_of
from annotator.assignment import Claim
from annotator.db.clock import database_now
from annotator.forms import RatingForm, ReportForm, SkipForm
from annotator.models import Assignment, Draft, Project, Response, Skip, SkipReason
from annotator.pii.highlights import marks_of
from annotator.refusals import Refusal
from annotator.views import history
from annotator.views.returning import back
from annotator.web.htmx import HtmxRequest
from annotator.web.query_parameters import number_in

MOST_REVISIONS = 99_999
NOT_QUALIFIED = "not_qualified"
"""The reason for no task that has a page of its own: the test."""


@login_required
@never_cache
@require_GET
def annotate(request: HttpRequest, slug: str) -> HttpResponse:
    """The next task to rate, or why there is none. Unread guidelines come first, then the test."""
    member = access.membership(user_of(request), slug)
    if member.has_unread_guidelines():
        return redirect("guidelines", slug)
    claimed = assignment.claim(member.project, user_of(request), now=database_now())
    if claimed.reason == NOT_QUALIFIED:
        return redirect("qualification", slug)
    work = _claimed_work(request, member.project, claimed)
    return render(request, "annotate.html", work | {"undo": _fresh_skip(request)})


def _fresh_skip(request: HttpRequest) -> Skip | None:
    """The skip that brought the annotator here, while it can be undone."""
    number = number_in(request.GET, "skipped")
    mine = Skip.objects.filter(assignment__annotator=user_of(request), assignment__state=Assignment.State.SKIPPED)
    fresh = mine.filter(created_at__gt=database_now() - annotation.UNDO_FOR)
    return fresh.filter(assignment=number).first() if number is not None else None


def _claimed_work(request: HttpRequest, project: Project, claimed: Claim) -> dict[str, Any]:
    """What the work area shows: a leased task with its form, or an explanation."""
    if claimed.assignment is None:
        return {"project": project, "explanation": claimed.explanation}
    return _begun_work(request, claimed.assignment, claimed.responses)


def _begun_work(request: HttpRequest, held: Assignment, responses: list[Response]) -> dict[str, Any]:
    """A task with its form as the draft has it."""
    draft = Draft.objects.filter(assignment=held).first()
    form = RatingForm(held.task.project, responses, initial=draft.form if draft else None)
    return _work(request, held, form) | {"saved_at": draft.saved_at if draft else None}


def _work(request: HttpRequest, held: Assignment, form: RatingForm) -> dict[str, Any]:
    project = held.task.project
    marks = marks_of(held.task)
    return {
        "assignment": held,
        "project": project,
        "conversation": held.task.conversation,
        "form": form,
        "pii": marks,
        "skip_form": SkipForm(held.task, marks),
        "report_form": ReportForm(),
        "left": assignment.tasks_left(project, user_of(request)),
        "previous": annotation.previous_rating(project, user_of(request)),
    }


@login_required
@never_cache
@require_http_methods(["GET", "POST"])
def submit(request: HtmxRequest, assignment_id: int) -> HttpResponse:
    """Stores a complete rating and answers with the next task; an incomplete one comes back as it was.

    A GET is somebody who had to log in again: their draft is on the rating page.
    """
    held = access.own_assignment(user_of(request), assignment_id)
    if request.method == "GET":
        return redirect("annotate", held.task.project.slug)
    if held.state == Assignment.State.SUBMITTED:
        messages.info(request, _("You have already rated this task. Your earlier rating is kept."))
        return _onwards(request, held)
    form = RatingForm(held.task.project, assignment.responses_in_order(held), request.POST)
    if not form.is_valid():
        page = "_work.html" if request.htmx else "annotate.html"
        return render(request, page, _work(request, held, form), status=422)
    user, project, now = user_of(request), held.task.project, database_now()
    next_one = request.htmx and not access.membership(user, project.slug).has_unread_guidelines()
    try:
        if next_one:
            done, claimed = annotation.submit_and_claim(user, held.pk, form.submission(), now=now)
        else:
            done = annotation.submit_own(user, held.pk, form.submission(), now=now)
    except Assignment.DoesNotExist as stranger:
        raise Http404 from stranger
    except Refusal as refused:
        messages.error(request, str(refused))
        return _onwards(request, held)
    # Translators: a time with its seconds, in the letters of Django's date filter.
    moment = date_format(timezone.localtime(now), _("H:i:s T"))
    messages.success(request, _("Saved at %(time)s.") % {"time": moment})
    if done.annotation.assignment.extra:
        messages.info(
            request,
            _("Somebody else had already taken your slot, so the rating counts only once a reviewer accepts it."),
        )
    return _work_area(request, project, claimed) if next_one else _onwards(request, held)


def _onwards(request: HtmxRequest, held: Assignment) -> HttpResponse:
    """The next task, in the same round trip where htmx asks."""
    slug = held.task.project.slug
    if not request.htmx:
        return redirect("annotate", slug)
    member = access.membership(user_of(request), slug)
    if member.has_unread_guidelines():
        return HttpResponseClientRedirect(resolve_url("guidelines", slug))
    claimed = assignment.claim(member.project, user_of(request), now=database_now())
    return _work_area(request, member.project, claimed)


def _work_area(request: HttpRequest, project: Project, claimed: Claim) -> HttpResponse:
    """The part of the page that htmx exchanges."""
    if claimed.reason == NOT_QUALIFIED:
        return HttpResponseClientRedirect(resolve_url("qualification", project.slug))
    return render(request, "_work.html", _claimed_work(request, project, claimed))


@login_required
@require_POST
def draft(request: HttpRequest, assignment_id: int) -> JsonResponse:
    """Keeps the half-filled form, and says when. `changed` names what was chosen since it last arrived."""
    held = access.own_assignment(user_of(request), assignment_id)
    sent = {name: values if name.startswith("checks-") else values[-1] for name, values in request.POST.lists()}
    form = {name: value for name, value in sent.items() if name not in ("csrfmiddlewaretoken", "changed")}
    changed, revision = request.POST.getlist("changed"), number_in(request.GET, "revision", most=MOST_REVISIONS) or 0
    try:
        saved_at = annotation.save_draft(held.pk, form, changed=changed, revision=revision, now=database_now())
    except Refusal as refused:
        return JsonResponse({"detail": str(refused)}, status=refused.status)
    return JsonResponse({"saved_at": saved_at})


@login_required
@require_POST
def heartbeat(request: HttpRequest, assignment_id: int) -> JsonResponse:
    """Renews the lease of somebody at work."""
    held = access.own_assignment(user_of(request), assignment_id)
    try:
        renewed = assignment.heartbeat(held.pk, now=database_now())
    except Refusal as refused:
        return JsonResponse({"detail": str(refused)}, status=refused.status)
    return JsonResponse({"lease_expires_at": renewed.lease_expires_at})


@login_required
@require_http_methods(["GET", "POST"])
def skip(request: HtmxRequest, assignment_id: int) -> HttpResponse:
    """Passes the task by, for a reason. A GET is somebody who had to log in again."""
    held = access.own_assignment(user_of(request), assignment_id)
    if request.method == "GET":
        return redirect("annotate", held.task.project.slug)
    form = SkipForm(held.task, marks_of(held.task), request.POST)
    if not form.is_valid():
        return _refused_form(request, held, {"skip_form": form})
    try:
        done = annotation.skip(held.pk, **form.cleaned_data, now=database_now())
    except Refusal as refused:
        messages.error(request, str(refused))
    else:
        messages.info(request, _said_of_skip(done, withdrawn=held.state == Assignment.State.SUBMITTED))
    here = back(request) or resolve_url("annotate", held.task.project.slug)
    return redirect(here if held.state == Assignment.State.SUBMITTED else f"{here}?skipped={held.pk}")


def _said_of_skip(done: Skip, *, withdrawn: bool) -> str:
    if withdrawn:
        return _("Your rating has been withdrawn. Nobody gets this task until a manager has looked at it.")
    if done.reason == SkipReason.PII:
        return _("Skipped. Nobody gets this task until a manager has looked at it.")
    return _("Skipped. The task stays open for others.")


@login_required
@require_http_methods(["GET", "POST"])
def undo_skip(request: HttpRequest, assignment_id: int) -> HttpResponse:
    """Takes a skip back, within ten seconds. A GET is somebody who had to log in again."""
    held = access.own_assignment(user_of(request), assignment_id)
    if request.method == "POST":
        try:
            annotation.undo_skip(held.pk, now=database_now())
        except Refusal as refused:
            messages.error(request, str(refused))
        else:
            messages.info(request, _("The skip is undone."))
    return redirect("annotate", held.task.project.slug)


@login_required
@require_http_methods(["GET", "POST"])
def report(request: HtmxRequest, assignment_id: int) -> HttpResponse:
    """Reports unsafe content. A GET is somebody who had to log in again."""
    held = access.own_assignment(user_of(request), assignment_id)
    if request.method == "GET":
        return redirect("annotate", held.task.project.slug)
    form = ReportForm(request.POST)
    if not form.is_valid():
        return _refused_form(request, held, {"report_form": form})
    try:
        annotation.report(held.pk, **form.cleaned_data, now=database_now())
    except Refusal as refused:
        messages.error(request, str(refused))
    else:
        messages.info(request, _("Reported. Nobody gets this task until a manager has looked at it."))
    return redirect("annotate", held.task.project.slug)


def _refused_form(request: HttpRequest, held: Assignment, form: dict[str, Any]) -> HttpResponse:
    """The task again with the form as it was sent, and what is wrong with it."""
    if held.state == Assignment.State.SUBMITTED and "skip_form" in form:
        return render(request, "revise.html", history.stored_rating(request, held, form["skip_form"]), status=422)
    if held.state != Assignment.State.LEASED:
        return redirect("annotate", held.task.project.slug)
    return render(
        request, "annotate.html", _begun_work(request, held, assignment.responses_in_order(held)) | form, status=422
    )
