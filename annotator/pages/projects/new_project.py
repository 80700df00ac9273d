"""Creates a project: from a rubric and a protocol, or as a copy of a project that the user manages."""

from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from annotator.infrastructure.web.middleware import HtmxRequest
from annotator.managing import project_settings
from annotator.managing.presets import PRESETS, workload
from annotator.managing.project_settings import copy_project
from annotator.managing.setting_table import TRAINER
from annotator.managing.settings_check import InvalidProject, deciding_in, never_met, scales_of
from annotator.models import Project
from annotator.pages.projects.new_project_form import CopyProjectForm, NewProjectForm
from annotator.reading import access
from annotator.reading.access import user_of


@require_http_methods(["GET", "POST"])
def new_project(request: HtmxRequest) -> HttpResponse:
    """Shows the form, estimates its annotations if `preview` is sent with it, else creates the project."""
    user = user_of(request)
    if not access.may_create_projects(user):
        raise PermissionDenied(_("Only staff and managers can create projects."))
    if "copy" in request.GET:
        return _copy(request)
    form = (
        NewProjectForm(user, request.POST)
        if request.method == "POST"
        else NewProjectForm(user, initial=NewProjectForm.beginning())
    )
    if request.method == "POST" and "preview" in request.POST:
        estimate = _estimate(form)
        if request.htmx:
            page = {"estimate": estimate, "never": _never_met(form)}
            return render(request, "workspace/_new_project_preview.html", page)
        # Only the estimate was asked for, so what is missing elsewhere is not an error yet.
        unfinished = NewProjectForm(user, initial=request.POST.dict())
        return render(request, "workspace/new_project.html", _page(unfinished, user, estimate))
    if request.method == "POST" and form.is_valid():
        try:
            project = project_settings.create(form.settings(), by=user, guidelines=form.cleaned_data["guidelines"])
        except InvalidProject as invalid:
            show_errors(form, invalid)
        else:
            for sentence in never_met(project):
                messages.warning(request, sentence)
            return _created(request, project)
    status = 422 if form.is_bound else 200
    return render(request, "workspace/new_project.html", _page(form, user, _estimate(form)), status=status)


def _copy(request: HtmxRequest) -> HttpResponse:
    user = user_of(request)
    form = CopyProjectForm(
        user, request.POST if request.method == "POST" else None, initial={"source": request.GET.get("copy")}
    )
    if request.method == "POST" and form.is_valid():
        data = form.cleaned_data
        named = {name: data[name] for name in ("slug", "name", "description")}
        try:
            project = copy_project(data["source"], by=user, **named)
        except InvalidProject as invalid:
            show_errors(form, invalid)
        else:
            return _created(request, project)
    shown = {"form": form, "is_copy": True, "may_copy": True}
    return render(request, "workspace/new_project.html", shown, status=422 if form.is_bound else 200)


def _page(form: NewProjectForm, user: Any, estimate: Any) -> dict[str, Any]:
    sentences = {key: _(preset.sentence) for key, preset in PRESETS.items()}
    may_copy = Project.objects.managed_by(user).exists()
    return {"form": form, "sentences": sentences, "estimate": estimate, "may_copy": may_copy}


def _estimate(form: NewProjectForm) -> Any:
    if not form.is_bound:
        first = next(iter(PRESETS.values()))
        return workload(first.numbers, tasks=form.initial["tasks_planned"])
    form.is_valid()
    numbers, tasks = form.numbers(), form.cleaned_data.get("tasks_planned")
    return workload(numbers, tasks=tasks) if numbers and tasks is not None else None


def _never_met(form: NewProjectForm) -> list[str]:
    """Returns what is to be said of limits that the chosen rubric's ratings cannot exceed."""
    numbers, rubric = form.numbers(), form.cleaned_data.get("rubric")
    if numbers is None or rubric is None:
        return []
    scales = scales_of(rubric)
    return never_met(Project(rubric=rubric, spread_attribute=deciding_in(scales), **numbers), scales)


def _created(request: HtmxRequest, project: Project) -> HttpResponse:
    said = _("%(project)s is ready. The list below says what to do first.") % {"project": project.name}
    messages.success(request, said)
    return redirect("overview", project.slug)


def show_errors(form: forms.BaseForm, invalid: InvalidProject) -> None:
    """Puts the reasons of a refusal at their fields, and those without a field at the top of the form."""
    for name, texts in invalid.errors.items():
        # The trainer's settings have a field for those that are not common.
        field = "further" if name == TRAINER else name
        form.add_error(field if field in form.fields else None, texts)
