"""Creates and changes projects and their guidelines; archives, restores and deletes projects."""

from collections.abc import Iterator
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST
from unfold.admin import TabularInline
from unfold.widgets import UnfoldAdminTextInputWidget

from annotator.access import user_of
from annotator.admin.scoping import OfManagedProjects
from annotator.db.clock import database_now
from annotator.forms.seen import SeenFieldsForm
from annotator.models import Guideline, Project
from annotator.projects import archive, deletion, figures, project_settings
from annotator.projects.guidelines import publish_guidelines
from annotator.projects.settings_check import InvalidProject, check, is_rated
from annotator.refusals import Refusal


class GuidelineInline(TabularInline):
    """Versions are added, never changed: annotators have acknowledged them."""

    model = Guideline
    form = SeenFieldsForm
    extra = 0
    fields = ["version", "text", "created_at"]
    readonly_fields = ["version", "created_at"]

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return True

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return True

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def get_formset(self, request: HttpRequest, obj: Any = None, **kwargs: Any) -> Any:
        """Fills the empty form with the text in force, so that changing a word takes no retyping."""
        formset = super().get_formset(request, obj, **kwargs)
        current = obj.current_guideline() if obj else None
        if current:
            formset.form.base_fields["text"].initial = current.text
        return formset


class ProjectForm(SeenFieldsForm):
    """Holds the settings to the rules that hold at every door."""

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        before = Project.objects.get(pk=self.instance.pk) if self.instance.pk else None
        if not self.errors:
            try:
                # What the form did not change may be of before: somebody else may have changed it meanwhile.
                check(before, {name: data[name] for name in data if name in self.changed_data} if before else data)
            except InvalidProject as invalid:
                for field, texts in invalid.errors.items():
                    self.add_error(field if field in self.fields else None, texts)
        return data


class DeletionForm(forms.Form):
    """Asks for the project's slug, typed by hand, before it is deleted."""

    confirm = forms.CharField(max_length=50, widget=UnfoldAdminTextInputWidget, label=_("The project's slug"))


class ArchivedFilter(admin.SimpleListFilter):
    """Archived projects stand in the list only where somebody asks for them."""

    title = _("archived")
    parameter_name = "archived"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("yes", _("Archived"))]

    def choices(self, changelist: Any) -> Iterator[Any]:
        in_use, *others = super().choices(changelist)
        yield {**in_use, "display": _("In use")}
        yield from others

    def queryset(self, request: HttpRequest, queryset: QuerySet[Project]) -> QuerySet[Project]:
        return queryset.filter(archived_at__isnull=self.value() != "yes")


@admin.register(Project)
class ProjectAdmin(OfManagedProjects):
    project_path = "pk"
    form = ProjectForm
    change_form_outer_before_template = "admin/_project_life.html"
    list_display = ["name", "slug", "total", "open", "complete", "quarantined"]
    list_filter = [ArchivedFilter]
    search_fields = ["name", "slug"]
    inlines = [GuidelineInline]
    fieldsets = [
        (None, {"fields": ["name", "slug", "description", "rubric"]}),
        (
            _("Protocol"),
            {
                "fields": [
                    ("base_annotators", "max_annotators", "escalate_above"),
                    ("keep", "drop_above"),
                    ("spread_scope", "spread_attribute", "spread_share"),
                    "lease_minutes",
                ]
            },
        ),
        (_("Work"), {"fields": ["paused", "quota"]}),
        (
            _("Questions"),
            {
                "fields": [
                    ("ask_preference", "allow_ties"),
                    ("ask_safety", "ask_confidence"),
                    ("ask_feedback", "ask_edit"),
                    ("ask_language", "domains"),
                    ("segment_unit", "allow_recut"),
                ]
            },
        ),
        (
            _("Qualification and gold tasks"),
            {
                "fields": [
                    "qualification_required",
                    ("qualification_threshold", "qualification_tries"),
                    "gold_every",
                    ("gold_window", "gold_threshold"),
                ],
                "description": _("Import gold tasks as rows with `gold` and an expert rating of each response."),
            },
        ),
        (
            _("Retraining"),
            {
                "fields": [
                    ("retrain_after_labels", "retrain_after_hours", "retrain_cooldown_minutes"),
                    "promote_automatically",
                    "review_unlikely_percent",
                    "validation_share",
                    "training_config",
                ]
            },
        ),
    ]

    def get_queryset(self, request: HttpRequest) -> Any:
        rows = super().get_queryset(request)
        return rows.standing()

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        changelist = super().get_changelist_instance(request)
        figures.add_progress(changelist.result_list, now=database_now())
        return changelist

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        return ["rubric"] if obj and is_rated(obj) else []

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_module_permission(request)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        # Of a project that exists, only what the form changed: the rest may have changed since it was read.
        data = {name: value for name, value in form.cleaned_data.items() if name in form.changed_data or not change}
        if change:
            recounted = project_settings.change(obj, data)
        else:
            # Django goes on with its own object, which has to become the row that the stage has made.
            obj.pk, recounted = project_settings.create(data, by=user_of(request)).pk, False
            obj.refresh_from_db()
        if obj.qualification_required and not obj.tasks.gold_for("test").exists():
            messages.warning(request, gettext("Nobody can pass the test yet. Import gold tasks for it first."))
        if obj.gold_every and not obj.tasks.gold_for("stream").exists():
            messages.warning(
                request, gettext("Annotators get no gold tasks yet. Import gold tasks for the stream first.")
            )
        if recounted:
            messages.info(
                request, gettext("The protocol has changed. Every task is being recomputed in the background.")
            )

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        # Before Django's own, whose last pattern takes any address.
        pages = [
            path("<int:pk>/archive/", view(require_POST(self.archive_view)), name="annotator_project_archive"),
            path("<int:pk>/restore/", view(require_POST(self.restore_view)), name="annotator_project_restore"),
            path("<int:pk>/erase/", view(self.erase_view), name="annotator_project_erase"),
        ]
        return [*pages, *super().get_urls()]

    def archive_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Archives the project, for a POST only: a link that somebody is led to must not do it."""
        project = get_object_or_404(self.get_queryset(request), pk=pk)
        archive.archive(project, now=database_now())
        messages.success(
            request, _said(gettext("%(project)s is archived. It takes no work, and nothing is lost."), project)
        )
        return redirect("admin:annotator_project_change", pk)

    def restore_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Takes the project out of the archive, for a POST only."""
        project = get_object_or_404(self.get_queryset(request), pk=pk)
        archive.restore(project)
        messages.success(request, _said(gettext("%(project)s takes work again."), project))
        return redirect("admin:annotator_project_change", pk)

    def erase_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Shows what would be deleted; deletes it once somebody has typed the slug."""
        project = get_object_or_404(self.get_queryset(request), pk=pk)
        form = DeletionForm(request.POST if request.method == "POST" else None)
        if request.method == "POST" and form.is_valid():
            try:
                is_deleted = deletion.delete(project, confirm=form.cleaned_data["confirm"], now=database_now())
            except Refusal as refused:
                form.add_error("confirm", str(refused))
            else:
                said = gettext("%(project)s is deleted.") if is_deleted else gettext("%(project)s is being deleted.")
                messages.success(request, _said(said, project))
                return redirect("admin:annotator_project_changelist")
        shown = {"form": form, "project": project, "contents": deletion.contents(project)}
        context = {
            **self.admin_site.each_context(request),
            "title": gettext("Delete the project"),
            "opts": self.opts,
            **shown,
        }
        return TemplateResponse(request, "admin/delete_project.html", context)

    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: bool) -> None:
        """Publishes a new text as the next version of the guidelines."""
        for guideline in formset.save(commit=False):
            publish_guidelines(guideline.project, guideline.text)
        formset.save_m2m()

    @admin.display(description=_("tasks"))
    def total(self, project: Any) -> int:
        return int(project.progress.total)

    @admin.display(description=_("open"))
    def open(self, project: Any) -> int:
        return int(project.progress.open)

    @admin.display(description=_("complete"))
    def complete(self, project: Any) -> int:
        return int(project.progress.complete)

    @admin.display(description=_("quarantined"))
    def quarantined(self, project: Any) -> int:
        return int(project.progress.quarantined)


def _said(sentence: str, project: Project) -> str:
    return sentence % {"project": project.name}
