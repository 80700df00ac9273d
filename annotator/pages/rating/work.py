"""The rating pages: the next task, its draft, and what an annotator does with it."""

from datetime import timedelta
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render, resolve_url
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET, require_http_methods, require_POST
from django_htmx.http import HttpResponseClientRedirect

from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.refusals import Refusal
from annotator.infrastructure.web.acting import answers_scripts, show_refusal
from annotator.infrastructure.web.middleware import STRICT, HtmxRequest
from annotator.infrastructure.web.query_parameters import number_in
from annotator.models import Assignment, Draft, Project, Report, Skip, SkipReason
from annotator.pages.data.recut_form import recut as recut_form
from annotator.pages.rating import history
from annotator.pages.rating.rating_form import RatingForm
from annotator.pages.rating.returning import back
from annotator.pages.rating.segments_form import by_cell, half_filled
from annotator.pages.rating.skips_form import ReportForm, SkipForm
from annotator.reading import access
from annotator.reading.access import user_of
from annotator.stages import annotation, assignment
from annotator.stages.assignment import Claim
from annotator.stages.pii.highlights import marks_of

MOST_REVISIONS = 99_999
LONGEST_WAIT = 86_400
DONE_ALREADY = gettext_lazy("You have already rated this task. Your earlier rating is kept.")
NOT_QUALIFIED = "not_qualified"
"""The reason for getting no task that leads to a page of its own, that of the test."""


@require_GET
def annotate(request: HttpRequest, slug: str) -> HttpResponse:
    """Shows the next task to rate, or why there is none. Unread guidelines come first, then the test."""
    member = access.membership(user_of(request), slug)
    if member.has_unread_guidelines():
        return redirect("guidelines", slug)
    claimed = assignment.claim(member.project, user_of(request), now=database_now())
    if claimed.reason == NOT_QUALIFIED:
        return redirect("qualification", slug)
    # The skip or the report that led here, as long as it can be undone.
    user, since = user_of(request), database_now() - annotation.UNDO_FOR
    skips = Skip.objects.filter(assignment__annotator=user, assignment__state=Assignment.State.SKIPPED)
    reports = Report.objects.filter(assignment__annotator=user, decision="")
    found: dict[str, Skip | Report | bool | None] = {"undo": None, "undo_report": None}
    if (skipped := number_in(request.GET, "skipped")) is not None:
        found["undo"] = skips.filter(created_at__gt=since, assignment=skipped).first()
    if (reported := number_in(request.GET, "reported")) is not None:
        found["undo_report"] = reports.filter(created_at__gt=since, assignment=reported).first()
    found["has_shift"] = bool(claimed.assignment and member.most_ahead())
    return render(request, "annotate.html", work_context(request, member.project, claimed) | found | {"policy": STRICT})


def work_context(
    request: HttpRequest, project: Project, work: Claim | Assignment, form: RatingForm | None = None
) -> dict[str, Any]:
    """Returns what the work area shows: a leased task with its form, or an explanation.

    `form` is the one that was sent. Without it the task's form is filled from the draft.
    """
    if isinstance(work, Assignment):
        mine, responses = work, [] if form else annotation.responses_to_rate(work)
    elif work.assignment:
        mine, responses = work.assignment, annotation.with_segments(work.assignment, list(work.responses))
    else:
        return {"project": project, "explanation": work.explanation}
    draft = None if form else Draft.objects.filter(assignment=mine).first()
    form = form or RatingForm(project, responses, initial=draft.form if draft else None)
    marks = marks_of(mine.task)
    return {
        "assignment": mine,
        "project": project,
        "conversation": mine.task.conversation,
        "form": form,
        "pii": marks,
        "skip_form": SkipForm(mine.task, marks),
        "report_form": ReportForm(),
        "left": assignment.tasks_left(project, user_of(request)),
        "previous": annotation.previous_rating(project, user_of(request)),
        "saved_at": draft.saved_at if draft else None,
    }


@require_http_methods(["GET", "POST"])
@answers_scripts
def submit(request: HtmxRequest, assignment_id: int) -> HttpResponse:
    """Stores a complete rating and answers with the next task; an incomplete one comes back as it was.

    A GET comes from somebody who had to log in again: their draft is on the rating page.
    """
    user = user_of(request)
    mine = access.own_assignment(user, assignment_id)
    project = mine.task.project
    if request.method == "GET":
        return redirect("annotate", project.slug)
    # This page stores first ratings only: a form sent again must not become a revision. But one may have been taken
    # back in a browser that did not know that it had arrived.
    if mine.state == Assignment.State.SUBMITTED and "again" not in request.POST:
        messages.info(request, DONE_ALREADY)
        return _onwards(request, project)
    form = RatingForm(project, annotation.responses_to_rate(mine), by_cell(request.POST))
    if not form.is_valid():
        page = "_work.html" if request.htmx else "annotate.html"
        return render(request, page, work_context(request, project, mine, form), status=422)
    now, claimed = database_now(), None
    # Guidelines are read before the next task is claimed. Without htmx the page that follows claims it.
    claims_next = request.htmx and not access.membership(user, project.slug).has_unread_guidelines()
    try:
        if claims_next:
            done, claimed = annotation.submit_and_claim(user, mine.pk, form.submission(), now=now)
        else:
            done = annotation.submit_own(user, mine.pk, form.submission(), now=now)
    except Assignment.DoesNotExist as stranger:
        raise Http404 from stranger
    except Refusal as refused:
        messages.error(request, str(refused))
        return _onwards(request, project)
    # Translators: a time with its seconds, in the letters of Django's date filter.
    moment = date_format(timezone.localtime(now), _("H:i:s T"))
    messages.success(request, _("Saved at %(time)s.") % {"time": moment})
    if done.annotation.assignment.extra:
        messages.info(
            request,
            _("Somebody else had already taken your slot, so the rating counts only once a reviewer accepts it."),
        )
    return _onwards(request, project, claimed)


def _onwards(request: HtmxRequest, project: Project, claimed: Claim | None = None) -> HttpResponse:
    """Answers with the next task, which it claims unless that has been done; by a redirect unless htmx asks."""
    if claimed is None:
        if not request.htmx:
            return redirect("annotate", project.slug)
        member = access.membership(user_of(request), project.slug)
        if member.has_unread_guidelines():
            return HttpResponseClientRedirect(resolve_url("guidelines", project.slug))
        claimed = assignment.claim(member.project, user_of(request), now=database_now())
    if claimed.reason == NOT_QUALIFIED:
        return HttpResponseClientRedirect(resolve_url("qualification", project.slug))
    return render(request, "_work.html", work_context(request, project, claimed))


@require_POST
def draft(request: HttpRequest, assignment_id: int) -> JsonResponse:
    """Stores the half-filled form, and answers with the time. `changed` names the fields chosen since it last came."""
    mine = access.own_assignment(user_of(request), assignment_id)
    form, changed = half_filled(request.POST)
    revision = number_in(request.GET, "revision", most=MOST_REVISIONS) or 0
    try:
        saved_at = annotation.save_draft(mine.pk, form, changed=changed, revision=revision, now=database_now())
    except Refusal as refused:
        return JsonResponse({"detail": str(refused)}, status=refused.status)
    return JsonResponse({"saved_at": saved_at})


@require_http_methods(["GET", "POST"])
def recut(request: HtmxRequest, assignment_id: int) -> HttpResponse:
    """Joins or divides segments of the half-filled form, keeps it as a draft and shows it again.

    A GET comes from somebody who had to log in again.
    """
    mine = access.own_assignment(user_of(request), assignment_id)
    if request.method == "GET" or not mine.task.project.allow_recut or mine.state != Assignment.State.LEASED:
        return redirect("annotate", mine.task.project.slug)
    responses = annotation.responses_to_rate(mine)
    form, values = RatingForm(mine.task.project, responses, by_cell(request.POST)), half_filled(request.POST)[0]
    wanted = {name: str(values.pop(name, "")) for name in ("join", "divide", "quote")}
    try:
        changed = recut_form(form, values, **wanted)
        annotation.save_draft(mine.pk, changed, now=database_now())
    except Refusal as refused:
        messages.error(request, str(refused))
        changed = values
    if not request.htmx:
        return redirect("annotate", mine.task.project.slug)
    shown = RatingForm(mine.task.project, responses, initial=changed)
    context = work_context(request, mine.task.project, mine, shown) | {"saved_at": database_now()}
    return render(request, "_work.html", context)


@require_POST
def heartbeat(request: HttpRequest, assignment_id: int) -> JsonResponse:
    """Renews the lease of somebody at work."""
    mine = access.own_assignment(user_of(request), assignment_id)
    try:
        renewed = assignment.heartbeat(mine.pk, now=database_now())
    except Refusal as refused:
        return JsonResponse({"detail": str(refused)}, status=refused.status)
    return JsonResponse({"lease_expires_at": renewed.lease_expires_at})


@require_http_methods(["GET", "POST"])
@answers_scripts
def skip(request: HtmxRequest, assignment_id: int) -> HttpResponse:
    """Skips the task for a reason. A GET comes from somebody who had to log in again."""
    # Its state stays the one from before the skip: a rating that was submitted is withdrawn, which has no undo.
    mine = access.own_assignment(user_of(request), assignment_id)
    if request.method == "GET":
        return redirect("annotate", mine.task.project.slug)
    form = SkipForm(mine.task, marks_of(mine.task), request.POST)
    if not form.is_valid():
        return _refused_form(request, mine, {"skip_form": form})
    with show_refusal(request):
        done = annotation.skip(mine.pk, **form.cleaned_data, now=database_now())
        if mine.state == Assignment.State.SUBMITTED:
            said = _("Your rating has been withdrawn. Nobody gets this task until a manager has looked at it.")
        elif done.reason == SkipReason.PII:
            said = _("Skipped. Nobody gets this task until a manager has looked at it.")
        else:
            said = _("Skipped. The task stays open for others.")
        messages.success(request, said)
    here = back(request) or resolve_url("annotate", mine.task.project.slug)
    return redirect(here if mine.state == Assignment.State.SUBMITTED else f"{here}?skipped={mine.pk}")


def _ago(request: HttpRequest) -> timedelta:
    """Returns how long an undo has waited in the browser for a network: at most a day."""
    return timedelta(seconds=number_in(request.POST, "ago", most=LONGEST_WAIT) or 0)


@require_http_methods(["GET", "POST"])
@answers_scripts
def undo_skip(request: HttpRequest, assignment_id: int) -> HttpResponse:
    """Takes a skip back within ten seconds. A GET comes from somebody who had to log in again."""
    mine = access.own_assignment(user_of(request), assignment_id)
    # What is undone already is sent again by a browser that missed the answer.
    if request.method == "POST" and mine.state != Assignment.State.LEASED:
        with show_refusal(request):
            annotation.undo_skip(mine.pk, now=database_now(), ago=_ago(request))
            messages.success(request, _("The skip is undone."))
    return redirect("annotate", mine.task.project.slug)


@require_http_methods(["GET", "POST"])
@answers_scripts
def report(request: HtmxRequest, assignment_id: int) -> HttpResponse:
    """Reports unsafe content. A GET comes from somebody who had to log in again."""
    mine = access.own_assignment(user_of(request), assignment_id)
    if request.method == "GET":
        return redirect("annotate", mine.task.project.slug)
    form = ReportForm(request.POST)
    if not form.is_valid():
        return _refused_form(request, mine, {"report_form": form})
    with show_refusal(request):
        annotation.report(mine.pk, **form.cleaned_data, now=database_now())
        messages.success(request, _("Reported. Nobody gets this task until a manager has looked at it."))
    return redirect(f"{resolve_url('annotate', mine.task.project.slug)}?reported={mine.pk}")


@require_http_methods(["GET", "POST"])
@answers_scripts
def undo_report(request: HttpRequest, assignment_id: int) -> HttpResponse:
    """Takes a report back within ten seconds. A GET comes from somebody who had to log in again."""
    mine = access.own_assignment(user_of(request), assignment_id)
    if request.method == "POST" and mine.reports.exists():
        with show_refusal(request):
            annotation.undo_report(mine.pk, now=database_now(), ago=_ago(request))
            messages.success(request, _("The report is undone."))
    return redirect("annotate", mine.task.project.slug)


@require_POST
def silent(request: HttpRequest, assignment_id: int) -> HttpResponse:
    """Notes that the guidelines are silent about the `attribute`; answers with a sentence for their panel."""
    mine = access.own_assignment(user_of(request), assignment_id)
    try:
        annotation.note_gap(mine.pk, attribute=request.POST.get("attribute", ""), now=database_now())
    except Refusal as refused:
        return HttpResponse(str(refused), status=refused.status, content_type="text/plain; charset=utf-8")
    said = _("Noted. Reviewers will look at this task; you can go on rating.")
    return HttpResponse(said, content_type="text/plain; charset=utf-8")


def _refused_form(request: HttpRequest, mine: Assignment, form: dict[str, Any]) -> HttpResponse:
    """Answers with the task again, with the form as it was sent and what is wrong with it."""
    if mine.state == Assignment.State.SUBMITTED:
        return render(request, "revise.html", history.stored_rating(request, mine, form), status=422)
    if mine.state != Assignment.State.LEASED:
        return redirect("annotate", mine.task.project.slug)
    return render(request, "annotate.html", work_context(request, mine.task.project, mine) | form, status=422)
