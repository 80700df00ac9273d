"""The admin of the human half. Managers are staff who see their own projects; superusers see all."""

from typing import Any

from django.contrib import admin, messages
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django_celery_beat import models as beat
from unfold.admin import ModelAdmin, TabularInline
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from annotator import annotation
from annotator.access import user_of
from annotator.models import Annotation, Guideline, Membership, Project, Rating, Response, Task, User
from annotator.refusals import Refusal

for scheduled in (
    beat.PeriodicTask,
    beat.IntervalSchedule,
    beat.CrontabSchedule,
    beat.SolarSchedule,
    beat.ClockedSchedule,
):
    admin.site.unregister(scheduled)


class ManagedOnly(admin.RelatedFieldListFilter):
    """A filter by project that names no project of somebody else's."""

    def field_choices(self, field: Any, request: HttpRequest, model_admin: Any) -> Any:
        managed = Project.objects.managed_by(user_of(request)).values("pk")
        return field.get_choices(include_blank=False, limit_choices_to={"pk__in": managed})


class OfManagedProjects(ModelAdmin):
    """Rows of the projects that the user manages. `project_path` leads from the row to its project."""

    project_path = "project"
    read_only = False

    def get_queryset(self, request: HttpRequest) -> Any:
        rows = super().get_queryset(request)
        if request.user.is_superuser:
            return rows
        return rows.filter(**{f"{self.project_path}__in": Project.objects.managed_by(user_of(request))})

    def has_module_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_active and request.user.is_staff)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_module_permission(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return not self.read_only and self.has_module_permission(request)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class GuidelineInline(TabularInline):
    """Versions are added, never changed: annotators have acknowledged them."""

    model = Guideline
    extra = 0
    fields = ["version", "text", "created_at"]
    readonly_fields = ["created_at"]

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return True

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return True

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


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
        ("What is asked", {"fields": [("ask_preference", "ask_safety", "ask_confidence")]}),
        (
            "Retraining",
            {"fields": [("retrain_after_labels", "retrain_after_hours"), "validation_share", "training_config"]},
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
        super().save_model(request, obj, form, change)
        if not change:
            Membership.objects.create(project=obj, user=user_of(request), role="manager")

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


class ResponseInline(TabularInline):
    model = Response
    extra = 0
    fields = ["position", "text", "model"]
    readonly_fields = ["position", "text", "model"]
    can_delete = False

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return True

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Task)
class TaskAdmin(OfManagedProjects):
    list_display = ["external_id", "project", "state", "priority", "slots_wanted", "open_slots"]
    list_filter = ["state", ("project", ManagedOnly)]
    search_fields = ["external_id"]
    list_select_related = ["project"]
    show_full_result_count = False
    fields = ["external_id", "project", "state", "priority", "slots_wanted", "open_slots", "conversation", "metadata"]
    readonly_fields = ["external_id", "project", "state", "slots_wanted", "open_slots", "conversation", "metadata"]
    inlines = [ResponseInline]
    actions = ["release", "retire"]

    @admin.action(description="False alarm: release from quarantine")
    def release(self, request: HttpRequest, queryset: QuerySet[Task]) -> None:
        self._decide(request, queryset, safe_to_use=True)

    @admin.action(description="Justified: retire quarantined tasks")
    def retire(self, request: HttpRequest, queryset: QuerySet[Task]) -> None:
        self._decide(request, queryset, safe_to_use=False)

    def _decide(self, request: HttpRequest, queryset: QuerySet[Task], *, safe_to_use: bool) -> None:
        for task in queryset:
            try:
                annotation.decide_quarantine(task.pk, safe_to_use=safe_to_use, now=timezone.now())
            except Refusal as refused:
                messages.warning(request, str(refused))
            else:
                messages.success(request, f"{task}: {'back in the queue' if safe_to_use else 'retired'}.")


class RatingInline(TabularInline):
    model = Rating
    extra = 0
    fields = ["response", "scores", "checks", "confidence", "safe"]
    readonly_fields = fields
    can_delete = False

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return True

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Annotation)
class AnnotationAdmin(OfManagedProjects):
    project_path = "assignment__task__project"
    read_only = True
    list_display = ["task", "annotator", "revision", "origin", "preference", "submitted_at"]
    list_filter = ["origin", "is_current", ("assignment__task__project", ManagedOnly)]
    search_fields = ["assignment__task__external_id", "assignment__annotator__username"]
    list_select_related = ["assignment__task", "assignment__annotator"]
    show_full_result_count = False
    inlines = [RatingInline]

    @admin.display(ordering="assignment__task__external_id")
    def task(self, row: Annotation) -> str:
        return row.assignment.task.external_id

    @admin.display(ordering="assignment__annotator__username")
    def annotator(self, row: Annotation) -> str:
        return str(row.assignment.annotator)


@admin.register(Membership)
class MembershipAdmin(OfManagedProjects):
    list_display = ["user", "project", "role", "acknowledged_version", "submitted"]
    list_filter = [("project", ManagedOnly), "role"]
    search_fields = ["user__username"]
    list_select_related = ["user", "project"]
    fields = ["user", "project", "role"]
    readonly_fields = ["user", "project"]

    @admin.display(description="annotations")
    def submitted(self, member: Membership) -> int:
        return member.user.assignments.submitted().filter(task__project=member.project_id).count()


@admin.register(User)
class UserAdmin(DjangoUserAdmin, ModelAdmin):  # type: ignore[type-arg]
    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
