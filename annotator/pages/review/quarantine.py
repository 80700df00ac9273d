"""The pages on which managers decide about quarantined tasks: release them, retire them, or redact them."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods

from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.refusals import Refusal
from annotator.infrastructure.web.acting import show_refusal
from annotator.infrastructure.web.query_parameters import number_in
from annotator.models import Project, Task
from annotator.pages.review.redaction_form import RedactForm, unconfirmed
from annotator.reading import access
from annotator.reading.access import user_of
from annotator.reading.blindness import require_not_rating
from annotator.reading.search.listing import MOST_COUNTED, excerpt
from annotator.stages.pii.highlights import Mark
from annotator.stages.pii.redaction import redact
from annotator.stages.quarantine.quarantine import PAGE, marks_of, quarantined, with_marks
from annotator.stages.review.rating_sheets import is_about_personal_information, set_aside


@require_GET
def quarantine(request: HttpRequest, slug: str) -> HttpResponse:
    """Lists the quarantined tasks, each with the buttons that decide about it."""
    user = user_of(request)
    project = access.managed_project(user, slug)
    tasks = quarantined(project, reader=user)
    after = number_in(request.GET, "after")
    part = tasks.filter(pk__lt=after) if after else tasks
    ids = list(part.values_list("pk", flat=True)[: PAGE + 1])
    rows = with_marks(tasks.filter(pk__in=ids[:PAGE]))
    context = {
        "project": project,
        "manages": True,
        "rows": [{"row": row, "task": row.task, "excerpt": excerpt(row.task.beginning)} for row in rows],
        "further": ids[PAGE - 1] if len(ids) > PAGE else None,
        "count": tasks.order_by().values("pk")[: MOST_COUNTED + 1].count(),
        "most": MOST_COUNTED,
        "first": after is None,
    }
    return render(request, "workspace/quarantine.html", context)


@require_http_methods(["GET", "POST"])
def quarantined_task(request: HttpRequest, slug: str, task_id: int) -> HttpResponse:
    """Shows one task with all that is marked in it. A POST shows what a redaction would leave, or carries it out."""
    user = user_of(request)
    project = access.managed_project(user, slug)
    task = get_object_or_404(project.tasks.exclude(state=Task.State.GOLD).prefetch_related("responses"), pk=task_id)
    try:
        require_not_rating(task, user)
    except Refusal as refused:
        messages.error(request, str(refused))
        return redirect("quarantine", slug)
    if task.state != Task.State.QUARANTINED:
        messages.info(request, _("%(task)s is not in quarantine any more.") % {"task": task})
        return redirect("data-task", slug, task.pk)
    form = RedactForm(task, request.POST if request.method == "POST" else None)
    why_not = unconfirmed([form], request.POST) if "redact" in request.POST else ""
    if "redact" in request.POST and not why_not and (answer := _redact(request, project, form)):
        return answer
    context = {
        "project": project,
        "manages": True,
        "task": task,
        "conversation": task.conversation,
        "pii": [Mark(mark.text, mark.kind, mark.span) for mark in form.marked],
        "marks": [mark for _task, mark in marks_of([task.pk])],
        "form": form,
        "why_not": why_not,
        "opened": request.method == "POST" or is_about_personal_information(task, set_aside(task)),
    }
    return render(request, "workspace/quarantined_task.html", context, status=422 if why_not else 200)


def _redact(request: HttpRequest, project: Project, form: RedactForm) -> HttpResponse | None:
    with show_refusal(request):
        redact(form.task.pk, form.choice, now=database_now())
        messages.success(request, _("%(task)s: redacted, back in the queue.") % {"task": form.task})
        messages.info(
            request,
            _("Earlier snapshots that contain the text, and their models, are marked. A manager can erase them."),
        )
        return redirect("quarantine", project.slug)
    return None
