"""The review pages: the queue, one task with all its ratings, and the newest submissions."""

from collections import ChainMap, defaultdict
from string import ascii_uppercase
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render, resolve_url
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.refusals import Refusal
from annotator.infrastructure.web.acting import show_refusal
from annotator.infrastructure.web.middleware import HtmxRequest
from annotator.infrastructure.web.paging import page_of
from annotator.infrastructure.web.query_parameters import choice_in, number_in
from annotator.models import Annotation, Assignment, Label, Project, Pseudonym, Rating, Task, Verdict
from annotator.pages.rating.rating_texts import comparison_text, preference_text, ranking_text, side_by_side
from annotator.pages.rating.returning import back
from annotator.pages.rating.segments_form import by_cell
from annotator.pages.review.review_form import (
    AdjudicationForm,
    QuarantineForm,
    VerdictForm,
    agreed_segments,
    as_it_stands,
    started_from,
)
from annotator.pages.review.segment_tables import review_tables
from annotator.reading import access
from annotator.reading.access import user_of
from annotator.reading.pseudonyms import Naming
from annotator.reading.search.listing import excerpt, with_beginnings
from annotator.stages import annotation
from annotator.stages.review import adjudicate, close_gaps, judge, withdraw
from annotator.stages.review.adjudications import WHY_NOT, SettledMeanwhile
from annotator.stages.review.queue import (
    MOST_COUNTED,
    QueueKey,
    beginnings_of_responses,
    how_many_wait,
    judged,
    next_waiting,
    queue_from,
    submissions,
    unjudged,
    waiting,
)
from annotator.stages.review.rating_sheets import Reviewed, is_about_personal_information, reviewed
from annotator.stages.review.verdicts import latest_verdicts
from annotator.templatetags.scales import level

PAGE = 25


@require_GET
def review(request: HttpRequest, slug: str) -> HttpResponse:
    """Lists the tasks that wait for a reviewer, the widest spread first; `find` leads to any task by its id."""
    project = access.reviewed_project(user_of(request), slug)
    if wanted := request.GET.get("find", "").strip():
        found = project.tasks.filter(external_id=wanted[:200]).exclude(state=Task.State.GOLD)
        if named := found.only("pk").first():
            return redirect("review-task", slug, named.pk)
        messages.error(request, _("There is no task with the id “%(id)s” in this project.") % {"id": wanted[:200]})
        return redirect("review", slug)
    because = _kind(request)
    after = QueueKey.read(request.GET.get("after", ""))
    # One task more says whether there is a further page, without a count.
    tasks = queue_from(with_beginnings(waiting(project, reason=because)), after=after, size=PAGE + 1)
    context = {
        "project": project,
        "tasks": [{"task": task, "excerpt": excerpt(task.beginning)} for task in tasks[:PAGE]],
        "further": QueueKey.of(tasks[PAGE - 1]) if len(tasks) > PAGE else None,
        "because": because,
        "kinds": Task.Review.choices,
        "waiting": how_many_wait(project),
        "most": MOST_COUNTED,
        "first": "after" not in request.GET,
    }
    return render(request, "review.html", context)


def _kind(request: HttpRequest) -> str:
    return choice_in(request.GET, "because", Task.Review.values)


# One task --------------------------------------------------------------------------------------------------


@require_http_methods(["GET", "POST"])
def review_task(request: HttpRequest, slug: str, task_id: int) -> HttpResponse:
    """Shows all ratings side by side; a POST sets the authoritative one and leads to the next task in the queue."""
    project = access.reviewed_project(user_of(request), slug)
    task = _task(project, task_id)
    try:
        ratings = reviewed(task, project, by=user_of(request))
    except Refusal as refused:
        messages.error(request, str(refused))
        return redirect("review", slug)
    data = by_cell(request.POST) if request.method == "POST" else None
    start = _start(request.GET.get("start", ""), ratings)
    tables = review_tables(ratings, project, finest=False)
    form = AdjudicationForm(project, ratings, data, initial=start, tables=tables)
    if form.is_valid():
        try:
            return _settle(request, task, form)
        except SettledMeanwhile as stale:
            again = _page(request, reviewed(_task(project, task_id), project, by=user_of(request)), form)
            page = again | {"project": project, "stale": str(stale)}
            return render(request, "review_task.html", page, status=stale.status)
    context = _page(request, ratings, form) | {"project": project}
    return render(request, "review_task.html", context, status=422 if form.is_bound else 200)


def _task(project: Project, task_id: int) -> Task:
    """Returns a task that may be reviewed, or raises 404: tasks that measure annotators stay unseen."""
    tasks = project.tasks.exclude(state=Task.State.GOLD).prefetch_related("responses")
    return get_object_or_404(tasks, pk=task_id)


def _start(wanted: str, ratings: Reviewed) -> dict[str, Any]:
    # Empty unless the reviewer asks for stored scores: those would lead their own judgement.
    if wanted == "means":
        labels = Label.objects.filter(response__task=ratings.task, source=Label.Source.CONSENSUS)
        of_segments = [
            agreed_segments(label) for label in labels.exclude(segment_scores=None).select_related("response")
        ]
        return started_from(ratings.rounded_means()) | dict(ChainMap(*of_segments))
    return as_it_stands(ratings.adjudication) if wanted == "settled" and ratings.adjudication else {}


def _settle(request: HttpRequest, task: Task, form: AdjudicationForm) -> HttpResponse:
    try:
        seen = number_in(request.POST, "settled")
        adjudicate(task.pk, **form.decision(), by=user_of(request), now=database_now(), seen=seen)
    except SettledMeanwhile:
        raise
    except Refusal as refused:
        messages.error(request, str(refused))
        return redirect(_address(request, "review-task", task.project.slug, task.pk))
    messages.success(request, _("Task %(task)s is settled. It has the labels that you set.") % {"task": task})
    following = _following(request, task)
    if following:
        return redirect(_address(request, "review-task", task.project.slug, following.pk))
    return redirect("review", task.project.slug)


def _following(request: HttpRequest, task: Task) -> Task | None:
    """Returns the next task in the queue that this person may decide."""
    user, project = user_of(request), task.project
    manages = access.manages(user, project)
    return next_waiting(project, reason=_kind(request), after=QueueKey.of(task), reviewer=user, manages=manages)


def _address(request: HttpRequest, name: str, *places: object) -> str:
    """Returns an address of the queue that keeps to the kind of task that the reviewer has chosen."""
    because = _kind(request)
    return resolve_url(name, *places) + (f"?{urlencode({'because': because})}" if because else "")


def _page(request: HttpRequest, ratings: Reviewed, form: AdjudicationForm) -> dict[str, Any]:
    task, reviewer = ratings.task, user_of(request)
    following = _following(request, task)
    refused = "" if form.may_be_settled else str(WHY_NOT[Task.State(task.state)])
    return side_by_side(ratings) | {
        "form": form,
        "refused": refused,
        "settled_preference": comparison_text(ratings.adjudication, ratings),
        "next_url": _address(request, "review-task", task.project.slug, following.pk) if following else "",
        "queue_url": _address(request, "review", task.project.slug),
        "because": _kind(request),
        "personal": bool(ratings.set_aside) and is_about_personal_information(task, ratings.set_aside),
        "manages": access.manages(reviewer, task.project),
        "is_member": reviewer.memberships.filter(project=task.project).exists(),
        "rankings": [
            (rater.number, ranking_text(rater.annotation.ranking, [one.response.pk for one in ratings.sheets]))
            for rater in ratings.raters
            if rater.counts and rater.annotation.ranking
        ],
    }


@require_POST
def withdraw_adjudication(request: HttpRequest, slug: str, task_id: int) -> HttpResponse:
    """Takes the authoritative rating back."""
    task = _task(access.reviewed_project(user_of(request), slug), task_id)
    with show_refusal(request):
        withdraw(task.pk, by=user_of(request), now=database_now())
        messages.success(request, _("Taken back. The label that the annotators agreed on applies again."))
    return redirect(_address(request, "review-task", slug, task_id))


@require_POST
def decide(request: HttpRequest, slug: str, task_id: int) -> HttpResponse:
    """Stores a manager's decision on a task that was set aside: back in the queue, or retired."""
    task = _task(access.managed_project(user_of(request), slug), task_id)
    form = QuarantineForm(request.POST)
    if not form.is_valid():
        messages.error(request, _("Nothing was decided. Choose one of the two buttons."))
        return redirect(back(request) or resolve_url("review-task", slug, task_id))
    safe = form.is_safe_to_use()
    with show_refusal(request):
        annotation.decide_quarantine(task.pk, safe_to_use=safe, now=database_now())
        text = _("%(task)s: back in the queue.") if safe else _("%(task)s: retired.")
        messages.success(request, text % {"task": task})
    return redirect(back(request) or resolve_url("review-task", slug, task_id))


@require_POST
def answer_gaps(request: HttpRequest, slug: str, task_id: int) -> HttpResponse:
    """Says that the guidelines answer what raters found them silent about; the task leaves the queue."""
    task = _task(access.reviewed_project(user_of(request), slug), task_id)
    with show_refusal(request):
        seen = number_in(request.POST, "seen") or 0
        if close_gaps(task.pk, by=user_of(request), seen=seen, now=database_now()):
            messages.success(request, _("The task no longer waits because of the guidelines."))
    return redirect(_address(request, "review-task", slug, task_id))


# Verdicts --------------------------------------------------------------------------------------------------


UNJUDGED, ALL = "unjudged", "all"


@require_GET
def review_submissions(request: HttpRequest, slug: str) -> HttpResponse:
    """Lists the newest submissions, to be accepted or rejected one by one; `verdict` and `annotator` narrow them."""
    project = access.reviewed_project(user_of(request), slug)
    naming = Naming(project, by_name=False)
    wanted = choice_in(request.GET, "verdict", [ALL, *Verdict.Decision.values], default=UNJUDGED) or UNJUDGED
    annotator = naming.person(request.GET.get("annotator", ""))
    rows = submissions(project, reviewer=user_of(request))
    if annotator:
        rows = rows.filter(assignment__annotator=annotator)
    if wanted == UNJUDGED:
        rows = unjudged(rows, user_of(request))
    elif wanted != ALL:
        rows = judged(rows, wanted)
    rows = rows.select_related("assignment__annotator").prefetch_related("ratings__response")
    page = page_of(request, rows, size=PAGE)
    rated = project.tallies.filter(done__gt=0).values("annotator")
    pseudonyms = Pseudonym.objects.filter(project=project, user__in=rated).order_by("name")
    context = page | {
        "project": project,
        "attributes": project.attributes_for(),
        "rows": _submitted(request, project, page["rows"], naming),
        "verdicts": [(UNJUDGED, _("Not judged yet")), *Verdict.Decision.choices, (ALL, _("All"))],
        "wanted": wanted,
        "annotators": list(pseudonyms.values_list("name", flat=True)),
        "annotator": naming(annotator) if annotator else "",
        "ask_preference": project.ask_preference,
    }
    return render(request, "review_submissions.html", context)


def _submitted(
    request: HttpRequest, project: Project, annotations: list[Annotation], naming: Naming
) -> list[dict[str, Any]]:
    """Returns each annotation with the beginnings of its task's texts, its verdict and its annotator's pseudonym."""
    # The texts are read once for all rows, and only their beginnings: whole ones may be a million characters long.
    tasks = Task.objects.filter(pk__in={annotation.assignment.task_id for annotation in annotations})
    by_id = {task.pk: task for task in with_beginnings(tasks)}
    responses = defaultdict(list)
    for response in beginnings_of_responses(list(by_id)):
        responses[response.task_id].append(response)
    verdicts = latest_verdicts([annotation.assignment_id for annotation in annotations])
    attributes = project.attributes_for()
    return [
        {
            "annotation": annotation,
            "task": by_id[annotation.assignment.task_id],
            "excerpt": excerpt(by_id[annotation.assignment.task_id].beginning),
            "responses": list(zip(ascii_uppercase, responses[annotation.assignment.task_id], strict=False)),
            "annotator": naming(annotation.assignment.annotator),
            "verdict": verdicts.get(annotation.assignment_id),
            "scores": [
                {"attribute": one, "levels": [level(rating.scores.get(one.key)) for rating in _by_position(annotation)]}
                for one in attributes
            ],
            "preference": preference_text(annotation.preference),
            "ranking": ranking_text(annotation.ranking, [one.response_id for one in _by_position(annotation)]),
        }
        for annotation in annotations
    ]


def _by_position(annotation: Annotation) -> list[Rating]:
    return sorted(annotation.ratings.all(), key=lambda rating: rating.response.position)


@require_POST
def verdict(request: HtmxRequest, slug: str, assignment_id: int) -> HttpResponse:
    """Accepts or rejects one annotation, and goes back to the page on which it was read."""
    project = access.reviewed_project(user_of(request), slug)
    assignment = get_object_or_404(Assignment.objects.filter(task__project=project).only("task"), pk=assignment_id)
    form = VerdictForm(request.POST)
    if not form.is_valid():
        raise Http404
    with show_refusal(request):
        stored = judge(assignment.pk, **form.cleaned_data, by=user_of(request), now=database_now())
        accepted = stored.decision == Verdict.Decision.ACCEPTED
        messages.success(request, _("Accepted.") if accepted else _("Rejected. The rating no longer counts."))
    return redirect(back(request) or resolve_url("review-task", slug, assignment.task_id))
