"""What the script of a local shift asks for: the next tasks, which the browser keeps ready, and the worker itself."""

import hashlib
from pathlib import Path
from uuid import UUID

from django.contrib.auth.decorators import login_not_required
from django.contrib.staticfiles import finders
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest, JsonResponse
from django.template.loader import render_to_string
from django.utils.translation import get_language
from django.views.decorators.http import require_GET, require_POST

from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.web.query_parameters import number_in
from annotator.managing.setting_table import NAMES
from annotator.models import Assignment, Project
from annotator.pages.rating.work import work_context
from annotator.reading import access
from annotator.reading.access import user_of
from annotator.stages import assignment


@require_POST
def ahead(request: HttpRequest, slug: str) -> HttpResponse:
    """Leases the next tasks for the page `shift`, which shows the assignment `shown`; answers with all that it holds.

    `has` names what the browser has, as `assignment:mark`: what is the same is not sent again. Who has to read new
    guidelines first holds nothing: after the task at hand the server leads them there.
    """
    user, member = user_of(request), access.membership(user_of(request), slug)
    project, now = member.project, database_now()
    try:
        shift = UUID(request.POST.get("shift", ""))
    except ValueError:
        return HttpResponseBadRequest("shift: write a UUID, which a page makes for itself.")
    if member.has_unread_guidelines():
        assignment.let_go(user)
        return JsonResponse({"order": [], "tasks": {}, "left": "", "user": user.pk})
    held = assignment.stock_up(project, user, shift=shift, shown=number_in(request.POST, "shown"), now=now)
    has = set(request.POST.getlist("has"))
    tasks = {}
    for claimed in assignment.claims_of(held):
        if (mine := claimed.assignment) is None:
            continue
        tasks[mine.pk] = {"mark": (mark := _mark(project, mine))}
        if f"{mine.pk}:{mark}" not in has:
            tasks[mine.pk]["html"] = render_to_string("_task.html", work_context(request, project, claimed), request)
    left = render_to_string("_left.html", {"left": assignment.tasks_left(project, user)}, request)
    return JsonResponse({"order": list(tasks), "tasks": tasks, "left": left, "user": user.pk})


def _mark(project: Project, mine: Assignment) -> str:
    """Returns a text that changes whenever the task's page would: with its texts, the questions or the language."""
    settings = [getattr(project, name) for name in NAMES if hasattr(project, name)]
    seen = (get_language(), mine.task.redacted_at, mine.task.pii_scanned_at, project.rubric.version, settings)
    return hashlib.sha256(repr(seen).encode()).hexdigest()[:16]


@require_POST
def let_go(request: HttpRequest, slug: str) -> JsonResponse:
    """Gives back what the page `shift` held ahead: somebody has closed it."""
    access.membership(user_of(request), slug)
    try:
        shift = UUID(request.POST.get("shift", ""))
    except ValueError:
        return JsonResponse({"ended": 0})
    return JsonResponse({"ended": assignment.let_go(user_of(request), shift=shift)})


@login_not_required
@require_GET
def worker(request: HttpRequest) -> HttpResponse:
    """Sends the service worker from the root, as it answers for the pages below its own address."""
    script = Path(finders.find("js/worker.js") or "")
    response = HttpResponse(script.read_bytes(), content_type="text/javascript; charset=utf-8")
    response["Cache-Control"] = "no-cache"
    return response
