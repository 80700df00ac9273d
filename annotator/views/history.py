"""One's own annotations: looked through, and changed while their task is open."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render, resolve_url
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods

from annotator import access, annotation, assignment
from annotator.access import user_of
from annotator.db.clock import database_now
from annotator.forms import RatingForm, SkipForm, filled
from annotator.models import Annotation, Assignment, Draft, Task, Verdict
from annotator.pii.highlights import marks_of
from annotator.refusals import Refusal
from annotator.review.verdicts import latest_verdict, latest_verdicts
from annotator.views.returning import back
from annotator.web.query_parameters import number_in

PAGE = 25
EXCERPT = 160


@login_required
@never_cache
@require_GET
def history(request: HttpRequest, slug: str) -> HttpResponse:
    """The newest annotations first, a page at a time; `before` is the id that the last page ended with."""
    project = access.membership(user_of(request), slug).project
    mine = Annotation.objects.current().for_project(project.pk).filter(assignment__annotator=user_of(request))
    before = number_in(request.GET, "before")
    if before is not None:
        mine = mine.filter(pk__lt=before)
    rows = list(mine.select_related("assignment__task__project").order_by("-pk")[: PAGE + 1])
    verdicts = latest_verdicts([row.assignment_id for row in rows])
    shown = [_row(row, verdicts.get(row.assignment_id)) for row in rows[:PAGE]]
    older = rows[PAGE - 1].pk if len(rows) > PAGE else None
    return render(request, "history.html", {"project": project, "rows": shown, "older": older, "before": before})


def _row(made: Annotation, verdict: Verdict | None) -> dict[str, Any]:
    task = made.assignment.task
    return {
        "annotation": made,
        "excerpt": _excerpt(task),
        "verdict": verdict,
        "open": annotation.may_be_changed(task, verdict),
    }


def _excerpt(task: Task) -> str:
    text = " ".join(str(task.conversation[-1]["content"])[: EXCERPT * 2].split())
    return text if len(text) <= EXCERPT else text[:EXCERPT] + "…"


@login_required
@never_cache
@require_http_methods(["GET", "POST"])
def revise(request: HttpRequest, assignment_id: int) -> HttpResponse:
    """One's own annotation: a form while the task is open, to be read afterwards."""
    held = access.own_assignment(user_of(request), assignment_id)
    stored = get_object_or_404(held.annotations.current().prefetch_related("ratings"))
    stored.assignment = held
    draft = Draft.objects.filter(assignment=held).first()
    form = RatingForm(
        held.task.project,
        assignment.responses_in_order(held),
        request.POST or None,
        initial=draft.form if draft else filled(stored),
    )
    if not form.is_bound or not form.is_valid():
        page = _page(request, held, stored, form) | {"saved_at": draft.saved_at if draft else stored.submitted_at}
        return render(request, "revise.html", page, status=422 if form.is_bound else 200)
    try:
        annotation.submit(held.pk, form.submission(), now=database_now())
    except Refusal as refused:
        messages.error(request, str(refused))
        return redirect("revise", held.pk)
    messages.success(request, _("Your change is saved."))
    return redirect(back(request) or resolve_url("history", held.task.project.slug))


def stored_rating(request: HttpRequest, held: Assignment, skip_form: SkipForm) -> dict[str, Any]:
    """The page of `revise` with a skip that was refused."""
    stored = get_object_or_404(held.annotations.current().prefetch_related("ratings"))
    stored.assignment = held
    form = RatingForm(held.task.project, assignment.responses_in_order(held), initial=filled(stored))
    return _page(request, held, stored, form) | {"skip_form": skip_form}


def _page(request: HttpRequest, held: Assignment, stored: Annotation, form: RatingForm) -> dict[str, Any]:
    verdict, project, marks = latest_verdict(held), held.task.project, marks_of(held.task)
    is_open = annotation.may_be_changed(held.task, verdict)
    return {
        "assignment": held,
        "annotation": stored,
        "verdict": verdict,
        "project": project,
        "conversation": held.task.conversation,
        "form": form,
        "open": is_open,
        "pii": marks,
        "skip_form": SkipForm(held.task, marks),
        "back": back(request),
        "previous": annotation.previous_rating(project, user_of(request), before=stored),
        "newer": annotation.next_rating(project, user_of(request), after=stored),
    }
