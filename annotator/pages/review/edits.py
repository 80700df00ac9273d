"""The page of the better versions of responses that annotators wrote, from which a manager has them rated."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods

from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.web.acting import show_refusal
from annotator.infrastructure.web.paging import page_of
from annotator.infrastructure.web.query_parameters import as_number
from annotator.reading import access
from annotator.reading.access import user_of
from annotator.stages.review import edits as stage

PAGE = 20


@require_http_methods(["GET", "POST"])
def edits(request: HttpRequest, slug: str) -> HttpResponse:
    """Lists the edits, the newest first; a POST makes tasks of those that are ticked."""
    user = user_of(request)
    project = access.managed_project(user, slug)
    if request.method == "POST":
        chosen = [number for value in request.POST.getlist("edits") if (number := as_number(value))]
        with show_refusal(request):
            created = stage.make_tasks(project, chosen, by=user, now=database_now())
            text = ngettext("%(count)s edit is now rated.", "%(count)s edits are now rated.", created)
            messages.success(request, text % {"count": created} if created else _("Tick the edits to be rated first."))
        return redirect("edits", slug)
    shown = page_of(request, stage.edits_of(project, reader=user), size=PAGE)
    return render(request, "workspace/edits.html", {"project": project, "manages": True, **shown})
