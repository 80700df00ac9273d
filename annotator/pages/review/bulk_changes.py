"""Changing many tasks of the tab Data at once: what would become of them, what was done, and undoing it."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.refusals import Refusal
from annotator.infrastructure.web.acting import show_refusal
from annotator.infrastructure.web.paging import page_of
from annotator.models import BulkChange, Project
from annotator.pages.data.data_form import TasksForm
from annotator.pages.review.bulk_changes_form import TICKED, BulkChangeForm
from annotator.reading import access
from annotator.reading.access import user_of
from annotator.reading.search import criteria
from annotator.reading.search.criteria import Criteria
from annotator.stages.review import bulk_changes as stage

PAGE = 25


@require_http_methods(["GET", "POST"])
def change_tasks(request: HttpRequest, slug: str) -> HttpResponse:
    """Says what a change of the chosen tasks would do; a POST to the same address carries it out."""
    user = user_of(request)
    project = access.managed_project(user, slug)
    # The address holds the choice, the filters of the list included.
    form = BulkChangeForm(request.GET)
    filters = TasksForm(project, request.GET, manages=True)
    # The filters of the list alone, without what belongs to the change.
    back = request.GET.copy()
    for name in ("tasks", "task", "action", "priority", "after"):
        back.pop(name, None)
    page = {"project": project, "manages": True, "form": form, "back": back.urlencode()}
    if not form.is_valid() or not filters.is_valid():
        return render(request, "workspace/change_tasks.html", page, status=422)
    chosen, action, priority = form.cleaned_data["tasks"], form.cleaned_data["action"], form.cleaned_data["priority"]
    try:
        if chosen == TICKED:
            tasks = criteria.named(project, form.ticked(), reader=user)
        else:
            tasks = criteria.found(project, filters.criteria(), reader=user)
        if request.method == "POST":
            change = stage.change_many(project, tasks, action=action, priority=priority, by=user, now=database_now())
            text = ngettext("%(count)s task was changed.", "%(count)s tasks were changed.", change.changed)
            going_on = _("The tasks are being changed in the background.")
            messages.success(request, text % {"count": change.changed} if change.finished_at else going_on)
            return redirect("bulk-changes", slug)
        page["foreseen"] = stage.bulk_change_preview(project, tasks, action=action, priority=priority)
    except Refusal as refused:
        page["refused"] = str(refused)
        return render(request, "workspace/change_tasks.html", page, status=refused.status)
    page |= {"action": BulkChange.Action(action), "priority": priority, "all": filters.criteria() == Criteria()}
    page["everything"] = chosen != TICKED and page["all"]
    return render(request, "workspace/change_tasks.html", page)


@require_GET
def bulk_changes(request: HttpRequest, slug: str) -> HttpResponse:
    """Lists the changes of many tasks, the newest first, each with the button that undoes it."""
    project = access.managed_project(user_of(request), slug)
    page = page_of(request, project.bulk_changes.select_related("by").order_by("-pk"), size=PAGE)
    page |= {"project": project, "manages": True, "under_way": any(row.is_under_way() for row in page["rows"])}
    return render(request, "workspace/bulk_changes.html", page)


@require_POST
def undo_change(request: HttpRequest, slug: str, change_id: int) -> HttpResponse:
    """Puts the tasks of a change back as they were."""
    project: Project = access.managed_project(user_of(request), slug)
    change = get_object_or_404(BulkChange.objects.filter(project=project), pk=change_id)
    with show_refusal(request):
        done = stage.undo(change, now=database_now())
        if done.undone_at is None:
            messages.success(request, _("The tasks are being put back in the background."))
        else:
            text = ngettext("%(count)s task is as before again.", "%(count)s tasks are as before again.", done.put_back)
            messages.success(request, text % {"count": done.put_back})
    return redirect("bulk-changes", slug)
