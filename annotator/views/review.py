"""What reviewers and managers do: the queue, one task with all its ratings, and what was submitted last."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render, resolve_url
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from annotator import access, annotation
from annotator.access import user_of
from annotator.db.clock import database_now
from annotator.forms.review import AdjudicationForm, QuarantineForm, VerdictForm, as_it_stands, started_from
from annotator.models import Adjudication, Annotation, Assignment, Project, Task, User, Verdict
from annotator.pii.highlights import marks_of
from annotator.refusals import Refusal
from annotator.review import adjudicate, judge, withdraw
from annotator.review.adjudications import WHY_NOT
from annotator.review.queue import (
    MOST_COUNTED,
    Place,
    how_many_wait,
    next_waiting,
    page,
    submissions,
    unjudged,
    waiting,
    with_beginnings,
)
from annotator.review.rating_sheets import Rater, Reviewed, reviewed
from annotator.review.verdicts import latest_verdicts
from annotator.views.rating_sheets import preference_text, ranking_text, table, unlikely_scores
from annotator.views.returning import back
from annotator.web.htmx import HtmxRequest
from annotator.web.query_parameters import choice_in, number_in

PAGE = 25
EXCERPT = 160


@login_required
@never_cache
@require_GET
def review(request: HttpRequest, slug: str) -> HttpResponse:
    """What waits, the widest spread first; `find` leads to any task by its id."""
    project = access.reviewed_project(user_of(request), slug)
    if wanted := request.GET.get("find", "").strip():
        return _found(request, project, wanted)
    because = _kind(request)
    after = Place.read(request.GET.get("after", ""))
    tasks = page(with_beginnings(waiting(project, because=because)), after=after, size=PAGE + 1)
    shown = {
        "project": project,
        "tasks": [{"task": task, "excerpt": _excerpt(task.beginning)} for task in tasks[:PAGE]],
        "further": Place.of(tasks[PAGE - 1]) if len(tasks) > PAGE else None,
        "because": because,
        "kinds": Task.Review.choices,
        "waiting": how_many_wait(project),
        "most": MOST_COUNTED,
        "first": "after" not in request.GET,
    }
    return render(request, "review.html", shown)


def _found(request: HttpRequest, project: Project, wanted: str) -> HttpResponse:
    task = project.tasks.filter(external_id=wanted[:200]).exclude(state=Task.State.GOLD).only("pk").first()
    if task:
        return redirect("review-task", project.slug, task.pk)
    messages.error(request, _("There is no task with the id “%(id)s” in this project.") % {"id": wanted[:200]})
    return redirect("review", project.slug)


def _kind(request: HttpRequest) -> str:
    return choice_in(request.GET, "because", Task.Review.values)


def _excerpt(text: str | None) -> str:
    words = " ".join((text or "").split())
    return words if len(words) <= EXCERPT else words[:EXCERPT] + "…"


# One task --------------------------------------------------------------------------------------------------


@login_required
@never_cache
@require_http_methods(["GET", "POST"])
def review_task(request: HttpRequest, slug: str, task_id: int) -> HttpResponse:
    """All ratings side by side; a POST sets the authoritative one and leads to the next task in the queue."""
    project = access.reviewed_project(user_of(request), slug)
    task = _task(project, task_id)
    try:
        shown = reviewed(task, project, by=user_of(request))
    except Refusal as refused:
        messages.error(request, str(refused))
        return redirect("review", slug)
    sent = request.POST if request.method == "POST" else None
    start = _start(request.GET.get("start", ""), shown)
    form = AdjudicationForm(project, list(task.responses.all()), sent, initial=start)
    if form.is_valid():
        return _settle(request, task, form)
    context = _page(request, shown, form) | {"project": project}
    return render(request, "review_task.html", context, status=422 if form.is_bound else 200)


def _task(project: Project, task_id: int) -> Task:
    """A task that may be reviewed: those that measure annotators stay unseen."""
    tasks = project.tasks.exclude(state=Task.State.GOLD).prefetch_related("responses")
    return get_object_or_404(tasks, pk=task_id)


def _start(wanted: str, shown: Reviewed) -> dict[str, Any]:
    """Empty, as a reviewer should judge anew, unless they ask for what is there."""
    if wanted == "means":
        return started_from(shown.rounded_means())
    return as_it_stands(shown.adjudication) if wanted == "settled" and shown.adjudication else {}


def _settle(request: HttpRequest, task: Task, form: AdjudicationForm) -> HttpResponse:
    try:
        adjudicate(task.pk, **form.decision(), by=user_of(request), now=database_now())
    except Refusal as refused:
        messages.error(request, str(refused))
        return redirect(_address(request, "review-task", task.project.slug, task.pk))
    messages.success(request, _("Settled: task %(task)s has the labels that you set.") % {"task": task})
    following = next_waiting(task.project, because=_kind(request), after=Place.of(task))
    if following:
        return redirect(_address(request, "review-task", task.project.slug, following.pk))
    return redirect("review", task.project.slug)


def _address(request: HttpRequest, name: str, *places: object) -> str:
    """An address of the queue, which keeps to the kind of task that the reviewer has chosen."""
    because = _kind(request)
    return resolve_url(name, *places) + (f"?{urlencode({'because': because})}" if because else "")


def _page(request: HttpRequest, shown: Reviewed, form: AdjudicationForm) -> dict[str, Any]:
    task = shown.task
    following = next_waiting(task.project, because=_kind(request), after=Place.of(task))
    refused = "" if task.state == Task.State.COMPLETE else str(WHY_NOT[Task.State(task.state)])
    return {
        "task": task,
        "conversation": task.conversation,
        "pii": marks_of(task),
        "shown": shown,
        "sheets": [table(each, shown) | {"scales": form.scales(each.response)} for each in shown.sheets],
        "unlikely": unlikely_scores(shown),
        "raters": [_rater(each, shown, user_of(request)) for each in shown.raters],
        "form": form,
        "refused": refused,
        "settled_preference": _compared(shown.adjudication, shown) if shown.adjudication else "",
        "next_url": _address(request, "review-task", task.project.slug, following.pk) if following else "",
        "queue_url": _address(request, "review", task.project.slug),
        "because": _kind(request),
        "manages": Project.objects.managed_by(user_of(request)).filter(pk=task.project_id).exists(),
    }


def _rater(rater: Rater, shown: Reviewed, reviewer: User) -> dict[str, Any]:
    mine = rater.annotation.assignment.annotator_id == reviewer.pk
    return {"rater": rater, "preference": _compared(rater.annotation, shown), "mine": mine}


def _compared(made: Annotation | Adjudication, shown: Reviewed) -> str:
    """The preference of two responses, or the ranking of more."""
    return preference_text(made.preference) or ranking_text(made.ranking, [each.response.pk for each in shown.sheets])


@login_required
@require_POST
def withdraw_adjudication(request: HttpRequest, slug: str, task_id: int) -> HttpResponse:
    """Takes the authoritative rating back."""
    task = _task(access.reviewed_project(user_of(request), slug), task_id)
    try:
        withdraw(task.pk, by=user_of(request), now=database_now())
    except Refusal as refused:
        messages.error(request, str(refused))
    else:
        messages.success(request, _("Taken back: what the annotators agreed on is in force again."))
    return redirect("review-task", slug, task_id)


@login_required
@require_POST
def decide(request: HttpRequest, slug: str, task_id: int) -> HttpResponse:
    """A manager's word on a task that was set aside."""
    task = _task(access.managed_project(user_of(request), slug), task_id)
    form = QuarantineForm(request.POST)
    if not form.is_valid():
        messages.error(request, _("Nothing was decided: choose one of the two buttons."))
        return redirect("review-task", slug, task_id)
    safe = form.is_safe_to_use()
    try:
        annotation.decide_quarantine(task.pk, safe_to_use=safe, now=database_now())
    except Refusal as refused:
        messages.error(request, str(refused))
    else:
        said = _("%(task)s: back in the queue.") if safe else _("%(task)s: retired.")
        messages.success(request, said % {"task": task})
    return redirect("review-task", slug, task_id)


# Verdicts --------------------------------------------------------------------------------------------------


@login_required
@never_cache
@require_GET
def review_submissions(request: HttpRequest, slug: str) -> HttpResponse:
    """The newest submissions, to be accepted or rejected one by one; with `all`, those that are judged too."""
    project = access.reviewed_project(user_of(request), slug)
    before = number_in(request.GET, "before")
    everything = request.GET.get("all") == "1"
    rows = submissions(project, reviewer=user_of(request), before=before)
    rows = rows if everything else unjudged(rows, user_of(request))
    rows = rows.select_related("assignment").prefetch_related("ratings__response")
    found = list(rows[: PAGE + 1])
    shown = {
        "project": project,
        "rows": _submitted(request, project, found[:PAGE]),
        "older": found[PAGE - 1].pk if len(found) > PAGE else None,
        "first": before is None,
        "everything": everything,
    }
    return render(request, "review_submissions.html", shown)


def _submitted(request: HttpRequest, project: Project, annotations: list[Annotation]) -> list[dict[str, Any]]:
    """Each with its task's beginning and its verdict; who made it is not said."""
    tasks = Task.objects.filter(pk__in={each.assignment.task_id for each in annotations})
    by_id = {task.pk: task for task in with_beginnings(tasks)}
    verdicts = latest_verdicts([each.assignment_id for each in annotations])
    keys = project.attributes_for()
    return [
        {
            "annotation": each,
            "task": by_id[each.assignment.task_id],
            "excerpt": _excerpt(by_id[each.assignment.task_id].beginning),
            "verdict": verdicts.get(each.assignment_id),
            "mine": each.assignment.annotator_id == user_of(request).pk,
            "scores": _scores(each, keys),
            "preference": preference_text(each.preference),
            "ranking": ranking_text(each.ranking, _by_position(each)),
        }
        for each in annotations
    ]


def _by_position(annotation: Annotation) -> list[int]:
    ratings = sorted(annotation.ratings.all(), key=lambda rating: rating.response.position)
    return [rating.response_id for rating in ratings]


def _scores(annotation: Annotation, attributes: list[Any]) -> list[dict[str, Any]]:
    ratings = sorted(annotation.ratings.all(), key=lambda rating: rating.response.position)
    levels = [[rating.scores.get(each.key) for rating in ratings] for each in attributes]
    return [
        {"attribute": each, "levels": [None if level is None else level + 1 for level in row]}
        for each, row in zip(attributes, levels, strict=True)
    ]


@login_required
@require_POST
def verdict(request: HtmxRequest, slug: str, assignment_id: int) -> HttpResponse:
    """Accepts or rejects one annotation, and goes back to where it was read."""
    project = access.reviewed_project(user_of(request), slug)
    held = get_object_or_404(Assignment.objects.filter(task__project=project).only("task"), pk=assignment_id)
    form = VerdictForm(request.POST)
    if not form.is_valid():
        raise Http404
    try:
        made = judge(held.pk, **form.cleaned_data, by=user_of(request), now=database_now())
    except Refusal as refused:
        messages.error(request, str(refused))
    else:
        accepted = made.decision == Verdict.Decision.ACCEPTED
        messages.success(request, _("Accepted.") if accepted else _("Rejected: it counts no more."))
    return redirect(back(request) or resolve_url("review-task", slug, held.task_id))
