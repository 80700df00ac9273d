"""Projects and their guidelines."""

from typing import Any

from django.contrib import admin, messages
from django.http import HttpRequest
from unfold.admin import TabularInline

from annotator import audit
from annotator.access import user_of
from annotator.admin.scoping import OfManagedProjects
from annotator.models import Guideline, Project
from annotator.projects import changing
from annotator.projects.guidelines import publish_guidelines


class GuidelineInline(TabularInline):
    """Versions are added, never changed: annotators have acknowledged them."""

    model = Guideline
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
        """The empty form starts with the text in force, so that changing a word takes no retyping."""
        formset = super().get_formset(request, obj, **kwargs)
        current = obj.current_guideline() if obj else None
        if current:
            formset.form.base_fields["text"].initial = current.text
        return formset


@admin.register(Project)
class ProjectAdmin(OfManagedProjects):
    project_path = "pk"
    list_display = ["name", "slug", "total", "open", "complete", "quarantined"]
    search_fields = ["name", "slug"]
    inlines = [GuidelineInline]
    fieldsets = [
        (None, {"fields": ["name", "slug", "description", "rubric"]}),
        (
            "Protocol",
            {
                "fields": [
                    ("base_annotators", "max_annotators", "escalate_above"),
                    ("keep", "drop_above"),
                    ("spread_scope", "spread_attribute"),
                    "lease_minutes",
                ]
            },
        ),
        ("Work", {"fields": ["paused", "quota", "queue_order"]}),
        ("What is asked", {"fields": [("ask_preference", "ask_safety", "ask_confidence")]}),
        (
            "Qualification and gold tasks",
            {
                "fields": [
                    "qualification_required",
                    ("qualification_threshold", "qualification_tries"),
                    "gold_every",
                    ("gold_window", "gold_threshold"),
                ],
                "description": "Gold tasks come by import: rows with gold and an expert rating of each response.",
            },
        ),
        (
            "Retraining",
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
        return rows.with_progress()

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        return ["slug", "rubric"] if obj else []

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_module_permission(request)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        before = audit.fields_of(Project.objects.get(pk=obj.pk)) if change else {}
        obj.save()
        if obj.qualification_required and not obj.tasks.gold_for("test").exists():
            messages.warning(request, "Nobody can pass yet: import gold tasks for the test first.")
        if obj.gold_every and not obj.tasks.gold_for("stream").exists():
            messages.warning(request, "No gold task comes yet: import gold tasks for the stream first.")
        if not change:
            changing.opened(obj, by=user_of(request))
        elif changing.changed(obj, before=before):
            messages.info(request, "The protocol has changed: the light worker recomputes every task.")

    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: bool) -> None:
        """A new text becomes the next version."""
        for guideline in formset.save(commit=False):
            publish_guidelines(guideline.project, guideline.text)
        formset.save_m2m()

    @admin.display(description="tasks")
    def total(self, project: Any) -> int:
        return int(project.tasks_total)

    @admin.display(description="open")
    def open(self, project: Any) -> int:
        return int(project.tasks_open)

    @admin.display(description="complete")
    def complete(self, project: Any) -> int:
        return int(project.tasks_complete)

    @admin.display(description="quarantined")
    def quarantined(self, project: Any) -> int:
        return int(project.tasks_quarantined)
