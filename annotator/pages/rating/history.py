"""Pages of an annotator's own annotations, which can be changed while their task is open."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render, resolve_url
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods

from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.web.acting import show_refusal
from annotator.infrastructure.web.paging import page_of
from annotator.models import Annotation, Assignment, Draft
from annotator.pages.rating.rating_form import RatingForm, filled
from annotator.pages.rating.returning import back
from annotator.pages.rating.segments_form import by_cell
from annotator.pages.rating.skips_form import ReportForm, SkipForm
from annotator.reading import access
from annotator.reading.access import user_of
from annotator.reading.search.listing import excerpt
from annotator.stages import annotation
from annotator.stages.pii.highlights import marks_of
from annotator.stages.review.verdicts import latest_verdict, latest_verdicts

PAGE = 25


@require_GET
def history(request: HttpRequest, slug: str) -> HttpResponse:
    """Lists the newest annotations first, a page at a time; `before` is the last id of the page before."""
    project = access.membership(user_of(request), slug).project
    mine = Annotation.objects.current().for_project(project.pk).filter(annotator=user_of(request))
    page = page_of(request, mine.select_related("assignment__task__project").order_by("-pk"), size=PAGE)
    verdicts = latest_verdicts([row.assignment_id for row in page["rows"]])
    changeable = annotation.changeable(page["rows"], verdicts)
    rows = [
        {
            "annotation": row,
            "excerpt": excerpt(str(row.assignment.task.conversation[-1]["content"])),
            "verdict": verdicts.get(row.assignment_id),
            "open": row.assignment_id in changeable,
        }
        for row in page["rows"]
    ]
    return render(request, "history.html", page | {"project": project, "rows": rows})


@require_http_methods(["GET", "POST"])
def revise(request: HttpRequest, assignment_id: int) -> HttpResponse:
    """Shows the user's own annotation: as a form while the task is open, afterwards only to be read."""
    mine = access.own_assignment(user_of(request), assignment_id)
    stored = get_object_or_404(mine.annotations.current().prefetch_related("ratings"))
    # What is at hand need not be read again.
    stored.assignment = mine
    draft = Draft.objects.filter(assignment=mine).first()
    form = RatingForm(
        mine.task.project,
        annotation.responses_to_rate(mine),
        by_cell(request.POST) or None,
        initial=filled(stored) | (draft.form if draft else {}),
    )
    if not form.is_bound or not form.is_valid():
        page = _page(request, mine, stored, form) | {"saved_at": draft.saved_at if draft else stored.submitted_at}
        return render(request, "revise.html", page, status=422 if form.is_bound else 200)
    with show_refusal(request):
        annotation.submit(mine.pk, form.submission(), now=database_now())
        messages.success(request, _("Your change is saved."))
        return redirect(back(request) or resolve_url("history", mine.task.project.slug))
    return redirect("revise", mine.pk)


def stored_rating(request: HttpRequest, mine: Assignment, refused: dict[str, Any]) -> dict[str, Any]:
    """Returns the context of the page of `revise`, with a skip or a report that was refused."""
    stored = get_object_or_404(mine.annotations.current().prefetch_related("ratings"))
    stored.assignment = mine
    form = RatingForm(mine.task.project, annotation.responses_to_rate(mine), initial=filled(stored))
    return _page(request, mine, stored, form) | refused


def _page(request: HttpRequest, mine: Assignment, stored: Annotation, form: RatingForm) -> dict[str, Any]:
    verdict, project, marks = latest_verdict(mine), mine.task.project, marks_of(mine.task)
    is_open = annotation.may_be_changed(mine.task, verdict)
    return {
        "assignment": mine,
        "annotation": stored,
        "verdict": verdict,
        "project": project,
        "conversation": mine.task.conversation,
        "form": form,
        "open": is_open,
        "pii": marks,
        "skip_form": SkipForm(mine.task, marks),
        "report_form": ReportForm(),
        "back": back(request),
        "previous": annotation.previous_rating(project, user_of(request), before=stored),
        "newer": annotation.next_rating(project, user_of(request), after=stored),
    }
