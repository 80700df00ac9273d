"""The pages of the qualification: the practice and the test that annotators take before their first task."""

from collections.abc import Mapping
from string import ascii_uppercase
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.refusals import Refusal
from annotator.infrastructure.web.acting import show_refusal
from annotator.models import QualificationAnswer, QualificationRun, Response, Task
from annotator.pages.rating.rating_form import GoldForm
from annotator.pages.rating.segments_form import by_cell, half_filled, practice_table
from annotator.reading import access
from annotator.reading.access import user_of
from annotator.stages import annotation, assignment
from annotator.stages.gold import qualification

Kind = QualificationRun.Kind


@require_GET
def overview(request: HttpRequest, slug: str) -> HttpResponse:
    """Shows what the test asks and where the member stands, with the buttons to begin."""
    member = access.membership(user_of(request), slug)
    context = {"member": member, "project": member.project, "standing": qualification.standing(member)}
    return render(request, "qualification.html", context)


@require_POST
def begin(request: HttpRequest, slug: str) -> HttpResponse:
    """Starts the practice or the test, or continues the one under way."""
    member = access.membership(user_of(request), slug)
    kind = Kind.TEST if request.POST.get("kind") == Kind.TEST else Kind.PRACTICE
    with show_refusal(request):
        run = qualification.begin(member, kind, now=database_now())
        return redirect("take-qualification", run.pk)
    return redirect("qualification", slug)


@require_http_methods(["GET", "POST"])
def take(request: HttpRequest, run_id: int) -> HttpResponse:
    """Shows the next task of the run; a POST answers it."""
    run = access.own_qualification_run(user_of(request), run_id)
    try:
        task = None if run.finished_at else qualification.task_at_hand(run)
    except Refusal as refused:
        messages.error(request, str(refused))
        task = None
    if task is None:
        return redirect("qualification", run.member.project.slug)
    # A form that is sent twice must not answer the task after its own.
    if request.method == "POST" and request.POST.get("task") != str(task.public_id):
        messages.info(request, _("You have already answered that task. Your first answer counts."))
        return redirect("take-qualification", run.pk)
    responses = _responses(run, task)
    form = GoldForm(run.member.project, responses, by_cell(request.POST) or None, initial=run.draft)
    if form.is_valid():
        qualification.answer(run, task, form.scores(), segments=form.segments(), now=database_now())
        # Practice explains each task; the test goes on.
        if run.kind == Kind.PRACTICE:
            return redirect("explained-gold", run.pk, task.pk)
        return redirect("take-qualification", run.pk)
    done = run.answers.values("response__task").distinct().count()
    total = Task.objects.filter(project=run.member.project_id).gold_for(run.kind).count()
    context = {
        "run": run,
        "task": task,
        "project": run.member.project,
        "conversation": task.conversation,
        "form": form,
        "number": done + 1,
        "total": total,
    }
    return render(request, "qualification_task.html", context, status=422 if form.is_bound else 200)


def _responses(run: QualificationRun, task: Task) -> list[Response]:
    responses = assignment.in_order(task.responses.all(), assignment.response_order(task, run.member.user))
    annotation.cuts_of(run.member.project, task, responses)
    return responses


@require_POST
def draft(request: HttpRequest, run_id: int) -> JsonResponse:
    """Stores the half-filled form of the task under way, and answers with the time."""
    run = access.own_qualification_run(user_of(request), run_id)
    now = database_now()
    form, changed = half_filled(request.POST)
    try:
        qualification.save_draft(run, form, changed=changed)
    except Refusal as refused:
        return JsonResponse({"detail": str(refused)}, status=refused.status)
    return JsonResponse({"saved_at": now})


@require_GET
def explained(request: HttpRequest, run_id: int, task_id: int) -> HttpResponse:
    """Shows the user's scores of a practice task beside the experts' scores and explanations."""
    run = access.own_qualification_run(user_of(request), run_id)
    # Of practice alone: a test may be taken again, so its answers stay unknown.
    answered = run.answers.filter(response__task=task_id, run__kind=Kind.PRACTICE)
    mine = {answer.response_id: answer for answer in answered}
    task = get_object_or_404(Task.objects.filter(responses__in=mine).distinct(), pk=task_id)
    return render(
        request,
        "qualification_explained.html",
        {
            "run": run,
            "project": run.member.project,
            "conversation": task.conversation,
            "sheets": _comparison(run, task, mine),
            "more": qualification.next_task(run) is not None,
        },
    )


def _comparison(run: QualificationRun, task: Task, mine: Mapping[int, QualificationAnswer]) -> list[dict[str, Any]]:
    """Returns for each response the attributes with the user's level and the experts', as scores and texts.

    `table` shows both levels of each segment, the user's first.
    """
    project = run.member.project
    attributes = project.attributes_for()
    return [
        {
            "response": response,
            "explanation": response.expert_rating.explanation,
            "table": practice_table(letter, response, project.aspects(), mine[response.pk]),
            "rows": [
                {
                    "attribute": attribute,
                    "mine": mine[response.pk].scores[attribute.key],
                    "experts": response.expert_rating.scores[attribute.key],
                    "mine_text": attribute.shown_levels[mine[response.pk].scores[attribute.key]],
                    "experts_text": attribute.shown_levels[response.expert_rating.scores[attribute.key]],
                }
                for attribute in attributes
            ],
        }
        for letter, response in zip(ascii_uppercase, _responses(run, task), strict=False)
    ]
