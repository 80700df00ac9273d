"""Tasks and their responses, for managers to read."""

from django.contrib import admin
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotator.admin.quarantine import DecidesQuarantine
from annotator.admin.scoping import ManagedOnly, ToBeRead
from annotator.models import Response, Task


def review_link(task: Task) -> SafeString:
    """Links to the task's ratings side by side. A gold task has none: it measures annotators, and is not reviewed."""
    if task.state == Task.State.GOLD:
        return SafeString("–")
    address = reverse("review-task", args=[task.project.slug, task.pk])
    return format_html('<a class="underline" href="{}">{}</a>', address, _("All ratings side by side"))


class ResponseInline(ToBeRead):
    model = Response
    fields = ["position", "text", "model"]
    readonly_fields = ["position", "text", "model"]


@admin.register(Task)
class TaskAdmin(DecidesQuarantine):
    recorded_as = "task"
    list_display = ["external_id", "project", "state", "set_aside", "priority", "slots_wanted", "open_slots"]
    list_filter = ["state", ("project", ManagedOnly)]
    search_fields = ["external_id"]
    task_path = "pk"
    list_select_related = ["project"]
    sortable_by = ()
    show_full_result_count = False
    fields = [
        "external_id",
        "project",
        "review",
        ("state", "set_aside"),
        ("pii_scanned_at", "redacted_at"),
        ("priority", "slots_wanted", "open_slots"),
        "turns",
        "metadata",
    ]
    readonly_fields = [
        "external_id",
        "project",
        "review",
        "state",
        "set_aside",
        "pii_scanned_at",
        "redacted_at",
        "slots_wanted",
        "open_slots",
        "turns",
        "metadata",
    ]
    inlines = [ResponseInline]

    @admin.display(description=gettext_lazy("review"))
    def review(self, task: Task) -> SafeString:
        return review_link(task)

    @admin.display(description=gettext_lazy("conversation"))
    def turns(self, task: Task) -> SafeString:
        """Shows the conversation as plain text, turn by turn."""
        return format_html_join(
            "",
            '<p style="white-space: pre-wrap; overflow-wrap: anywhere"><strong>{}</strong>\n{}</p>',
            ((turn["role"], turn["content"]) for turn in task.conversation),
        )
