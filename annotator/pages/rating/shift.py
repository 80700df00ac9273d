"""What the script of a local shift asks for: the next tasks, which the browser keeps ready, and the worker itself."""

import hashlib
from pathlib import Path
from typing import Any
from uuid import UUID

from django.contrib.auth.decorators import login_not_required
from django.contrib.staticfiles import finders
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest, JsonResponse
from django.template.loader import render_to_string
from django.utils.translation import get_language
from django.views.decorators.http import require_GET, require_POST

from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.web.query_parameters import as_number, number_in
from annotator.managing.setting_table import NAMES
from annotator.models import Assignment
from annotator.pages.rating.work import DONE_ALREADY, work_context
from annotator.reading import access
from annotator.reading.access import user_of
from annotator.stages import assignment


@require_POST
def ahead(request: HttpRequest, slug: str) -> HttpResponse:
    """Leases the next tasks for the page `shift`, which shows the assignment `shown`; answers with all that it holds.

    `has` names what the browser has, as `assignment:mark`: what is the same is not sent again. `done` says that what is
    shown has been rated meanwhile. Who has to read new guidelines first holds nothing: after the task at hand the
    server leads them there.
    """
    user, member = user_of(request), access.membership(user_of(request), slug)
    project, now = member.project, database_now()
    try:
        shift = UUID(request.POST.get("shift", ""))
    except ValueError:
        return HttpResponseBadRequest("shift: write a UUID, which a page makes for itself.")
    if member.has_unread_guidelines():
        assignment.let_go(user, shift=shift)
        return JsonResponse({"order": [], "tasks": {}, "left": "", "user": user.pk})
    has = set(request.POST.getlist("has"))
    shown = number_in(request.POST, "shown")
    done = shown is not None and Assignment.objects.submitted().filter(annotator=user, pk=shown).exists()
    held = assignment.stock_up(project, user, shift=shift, shown=shown, now=now)
    claims = {claimed.assignment.pk: claimed for claimed in assignment.claims_of(held) if claimed.assignment}
    # A mark changes whenever the task's page would: with its texts, the questions or the language.
    asked = (
        get_language(),
        project.rubric.version,
        [getattr(project, name) for name in NAMES if hasattr(project, name)],
    )
    texts = Assignment.objects.filter(pk__in=claims).values_list("pk", "task__redacted_at", "task__pii_scanned_at")
    marks = {row[0]: hashlib.sha256(repr((asked, row)).encode()).hexdigest()[:16] for row in texts}
    tasks: dict[int, dict[str, Any]] = {
        number: {"mark": marks.get(number, ""), "seconds": 60 * project.lease_minutes} for number in claims
    }
    for number, claimed in claims.items():
        if f"{number}:{marks.get(number)}" not in has:
            tasks[number]["html"] = render_to_string("_task.html", work_context(request, project, claimed), request)
    left = render_to_string("_left.html", {"left": assignment.tasks_left(project, user)}, request)
    said = str(DONE_ALREADY) if done else ""
    return JsonResponse({"order": list(tasks), "tasks": tasks, "left": left, "user": user.pk, "done": said})


@require_POST
def let_go(request: HttpRequest, slug: str) -> JsonResponse:
    """Gives back what the page `shift` held ahead: somebody has closed it."""
    access.membership(user_of(request), slug)
    try:
        shift = UUID(request.POST.get("shift", ""))
    except ValueError:
        return JsonResponse({"ended": 0})
    but = [number for text in request.POST.getlist("but") if (number := as_number(text)) is not None]
    return JsonResponse({"ended": assignment.let_go(user_of(request), shift=shift, but=but)})


@login_not_required
@require_GET
def worker(request: HttpRequest) -> HttpResponse:
    """Sends the service worker from the root, as it answers for the pages below its own address."""
    script = Path(finders.find("js/worker.js") or "")
    return HttpResponse(script.read_bytes(), content_type="text/javascript; charset=utf-8")
