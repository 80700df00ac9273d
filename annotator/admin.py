"""The admin of the human half. Managers are staff who see their own projects; superusers see all."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from django_celery_beat import models as beat
from unfold.admin import ModelAdmin, TabularInline
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm
from unfold.widgets import UnfoldAdminPasswordWidget, UnfoldAdminTextInputWidget

from annotator import annotation, membership, protocol
from annotator.access import user_of
from annotator.guidelines import publish_guidelines
from annotator.models import (
    Annotation,
    Guideline,
    Membership,
    Project,
    Rating,
    Report,
    Response,
    Skip,
    SkipReason,
    Task,
    User,
)
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
        elif set(form.changed_data) & set(protocol.NUMBERS):
            protocol.recount_later(obj)
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
    list_display = ["external_id", "project", "state", "set_aside", "priority", "slots_wanted", "open_slots"]
    list_filter = ["state", ("project", ManagedOnly)]
    search_fields = ["external_id"]
    list_select_related = ["project"]
    show_full_result_count = False
    fields = [
        "external_id",
        "project",
        ("state", "set_aside"),
        ("priority", "slots_wanted", "open_slots"),
        "turns",
        "metadata",
    ]
    readonly_fields = [
        "external_id",
        "project",
        "state",
        "set_aside",
        "slots_wanted",
        "open_slots",
        "turns",
        "metadata",
    ]
    inlines = [ResponseInline]
    actions = ["release", "retire"]

    @admin.display(description="set aside because")
    def set_aside(self, task: Task) -> str:
        """What annotators said when they reported the task or skipped it for personal information."""
        reports = Report.objects.filter(assignment__task=task)
        skips = Skip.objects.filter(assignment__task=task, reason=SkipReason.PII)
        said = [f"{report.get_category_display()} {report.note}".strip() for report in reports]
        said += [f"{skip.get_reason_display()} {skip.note}".strip() for skip in skips]
        return "; ".join(said)

    @admin.display(description="conversation")
    def turns(self, task: Task) -> SafeString:
        """Plain text, turn by turn."""
        return format_html_join(
            "",
            '<p style="white-space: pre-wrap; overflow-wrap: anywhere"><strong>{}</strong>\n{}</p>',
            ((turn["role"], turn["content"]) for turn in task.conversation),
        )

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


class InvitationForm(forms.ModelForm):  # type: ignore[type-arg]
    """Adds somebody to a project, with a password where the account does not exist yet."""

    managed: Any = None
    username = forms.CharField(max_length=150, widget=UnfoldAdminTextInputWidget)
    password = forms.CharField(
        required=False,
        widget=UnfoldAdminPasswordWidget(attrs={"autocomplete": "new-password"}),
        help_text="only for an account that does not exist yet",
    )

    class Meta:
        model = Membership
        fields = ["project", "role"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["project"].queryset = self.managed  # type: ignore[attr-defined]

    def save(self, commit: bool = True) -> Membership:
        data = self.cleaned_data
        member, _ = membership.admit(
            data["project"], username=data["username"], role=data["role"], password=data["password"]
        )
        self.instance = member
        return member

    def clean(self) -> dict[str, Any]:
        """Tries the admission and takes it back, so that a refusal is shown in the form."""
        data = super().clean() or {}
        if "project" in data and "username" in data:
            self._try_out(data)
        return data

    def _try_out(self, data: dict[str, Any]) -> None:
        try:
            with transaction.atomic():
                membership.admit(
                    data["project"], username=data["username"], role=data["role"], password=data["password"]
                )
                transaction.set_rollback(True)
        except Refusal as refused:
            self.add_error("username", str(refused))


@admin.register(Membership)
class MembershipAdmin(OfManagedProjects):
    actions = ["remove_from_project"]
    list_display = ["user", "project", "role", "acknowledged_version", "submitted"]
    list_filter = [("project", ManagedOnly), "role"]
    search_fields = ["user__username"]
    list_select_related = ["user", "project"]

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        if obj is not None:
            return super().get_form(request, obj, change, **kwargs)
        return type("Invitation", (InvitationForm,), {"managed": Project.objects.managed_by(user_of(request))})

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        return ["user", "project", "role"] if obj else ["project", "username", "role", "password"]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        return ["user", "project"] if obj else []

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_module_permission(request)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """The invitation has made the member itself."""
        if change:
            super().save_model(request, obj, form, change)

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """A membership has nothing related to save."""

    @admin.action(description="Remove from the project")
    def remove_from_project(self, request: HttpRequest, queryset: QuerySet[Membership]) -> None:
        """Finished work stays; tasks they hold go back."""
        for member in queryset:
            membership.dismiss(member)
        messages.success(request, "Removed. Their finished work stays.")

    @admin.display(description="annotations")
    def submitted(self, member: Membership) -> int:
        return member.user.assignments.submitted().filter(task__project=member.project_id).count()


@admin.register(User)
class UserAdmin(DjangoUserAdmin, ModelAdmin):  # type: ignore[type-arg]
    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
