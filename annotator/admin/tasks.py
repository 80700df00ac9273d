"""Tasks, and what becomes of those that are set aside."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from unfold.admin import TabularInline

from annotator import annotation
from annotator.admin.scoping import ManagedOnly, OfManagedProjects
from annotator.models import (
    Report,
    Response,
    Skip,
    SkipReason,
    Task,
)
from annotator.refusals import Refusal


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
