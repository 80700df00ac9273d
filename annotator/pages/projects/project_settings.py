"""A project's settings, for its managers: every setting, what a change would do, and the end of a project."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.refusals import Refusal
from annotator.infrastructure.stale_edits import FIELD, ChangedMeanwhile, sealed
from annotator.infrastructure.web.middleware import HtmxRequest
from annotator.managing import archive, deletion, project_settings
from annotator.managing.setting_table import COMMON, RECOUNTING, TRAINER
from annotator.managing.settings_check import InvalidProject, never_met
from annotator.models import AuditEntry, Project
from annotator.pages.projects.new_project import show_errors
from annotator.pages.projects.project_settings_form import DeleteProjectForm, ProjectSettingsForm
from annotator.reading import access
from annotator.reading.access import user_of


@require_http_methods(["GET", "POST"])
def settings(request: HtmxRequest, slug: str) -> HttpResponse:
    """Shows the settings; a POST saves them, or with `preview` says what the change would do to tasks and labels."""
    project = access.managed_project(user_of(request), slug)
    if request.method == "GET":
        return render(request, "workspace/settings.html", _page(project, ProjectSettingsForm(project)))
    form = ProjectSettingsForm(project, request.POST)
    if "preview" in request.POST:
        shown = _previewed(project, form)
        if request.htmx:
            return render(request, "workspace/_settings_preview.html", shown)
        return render(request, "workspace/settings.html", _page(project, form) | shown)
    if form.is_valid():
        try:
            recounted = project_settings.change(project, form.changes(), seen=form.shown())
        except InvalidProject as invalid:
            show_errors(form, invalid)
        except ChangedMeanwhile as stale:
            return _changed_meanwhile(request, project.pk, form, stale)
        else:
            return _saved(request, project, recounted=recounted)
    return render(request, "workspace/settings.html", _page(project, form), status=422)


def _saved(request: HttpRequest, project: Project, *, recounted: bool) -> HttpResponse:
    messages.success(request, _("The settings are saved."))
    if recounted:
        messages.info(request, _("The protocol has changed. Every task is being recomputed in the background."))
    for sentence in never_met(project):
        messages.warning(request, sentence)
    if project.qualification_required and not project.tasks.gold_for("test").exists():
        messages.warning(request, _("Nobody can pass the test yet. Import gold tasks for it first."))
    if project.gold_every and not project.tasks.gold_for("stream").exists():
        messages.warning(request, _("Annotators get no gold tasks yet. Import gold tasks for the stream first."))
    return redirect("project-settings", project.slug)


def _previewed(project: Project, form: ProjectSettingsForm) -> dict[str, Any]:
    """Returns what the page shows of the effects of a change: numbers, or why there are none."""
    if not form.is_valid():
        return {"asked": True, "preview": None}
    try:
        changes = {name: value for name, value in form.changes().items() if name in RECOUNTING}
        preview = project_settings.preview(project, changes) if changes else None
    except InvalidProject as invalid:
        return {
            "asked": True,
            "preview": None,
            "reasons": [text for texts in invalid.errors.values() for text in texts],
        }
    then = project_settings.candidate(project, changes)
    return {"asked": True, "preview": preview, "is_same": not changes, "never": never_met(then)}


def _changed_meanwhile(
    request: HttpRequest, project_id: int, form: ProjectSettingsForm, stale: ChangedMeanwhile
) -> HttpResponse:
    """Shows what somebody else has changed; what the user has changed stays in the form, to be saved over it."""
    project = Project.objects.select_related("rubric").get(pk=project_id)
    shown, fresh = form.shown(), ProjectSettingsForm(project)
    mine = form.changes()
    # The form has no fields for settings that change nothing in this project; somebody may change them over REST.
    theirs = [
        {
            "label": str(fresh.base_fields["further" if name == TRAINER else name].label),
            "before": shown[name],
            "after": fresh.before[name],
            "also_mine": name in mine,
        }
        for name in stale.names
    ]
    # The user's own changes over what is stored by now, and the page's new state to be compared with.
    data = request.POST.copy()
    for name in fresh.fields:
        source = TRAINER if name in ("further", *COMMON) else name
        if source not in mine:
            data.pop(name, None)
            value = fresh[name].value()
            if value is not None and value is not False:
                data[name] = str(value)
    data[FIELD] = sealed(fresh.before)
    again = ProjectSettingsForm(project, data)
    again.is_valid()
    entries = AuditEntry.objects.filter(project_id=project.pk, action="project.changed").order_by("-pk")
    page = _page(project, again) | {"theirs": theirs, "theirs_entry": entries.first()}
    return render(request, "workspace/settings.html", page, status=409)


def _page(project: Project, form: ProjectSettingsForm) -> dict[str, Any]:
    wrong = [(field, error) for field in form for error in field.errors] if form.is_bound else []
    counted, never = project.recounts_wanted.exists(), never_met(project)
    return {"project": project, "form": form, "wrong": wrong, "counted": counted, "never": never}


# The end of a project --------------------------------------------------------------------------------------


@require_POST
def archive_project(request: HttpRequest, slug: str) -> HttpResponse:
    """Archives the project. It takes no work, and can be brought back."""
    project = access.managed_project(user_of(request), slug)
    archive.archive(project, now=database_now())
    text = _("%(project)s is archived. It takes no work, and nothing is lost.")
    messages.success(request, text % {"project": project.name})
    return redirect("project-settings", slug)


@require_POST
def restore_project(request: HttpRequest, slug: str) -> HttpResponse:
    """Takes the project out of the archive."""
    project = access.managed_project(user_of(request), slug)
    archive.restore(project)
    messages.success(request, _("%(project)s takes work again.") % {"project": project.name})
    return redirect("project-settings", slug)


@require_http_methods(["GET", "POST"])
def delete_project(request: HttpRequest, slug: str) -> HttpResponse:
    """Shows what would be deleted, and deletes it once somebody has typed the project's name."""
    project = access.managed_project(user_of(request), slug)
    form = DeleteProjectForm(request.POST if request.method == "POST" else None)
    if form.is_bound and form.is_valid():
        try:
            is_deleted = deletion.delete(project, confirm=form.cleaned_data["confirm"], now=database_now())
        except deletion.NotConfirmed:
            form.add_error("confirm", _("This is not the project's name."))
        except Refusal as refused:
            form.add_error(None, str(refused))
        else:
            said = _("%(project)s is deleted.") if is_deleted else _("%(project)s is being deleted.")
            messages.success(request, said % {"project": project.name})
            return redirect("home")
    page = {"project": project, "form": form, "contents": deletion.contents(project)}
    return render(request, "workspace/delete_project.html", page, status=422 if form.is_bound else 200)
