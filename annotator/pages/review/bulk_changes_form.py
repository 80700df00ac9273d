"""The form that changes many tasks of the tab Data at once."""

from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotator.models import BulkChange
from annotator.models.public_ids import LARGEST
from annotator.stages.review.bulk_changes import PRIORITIES

TICKED, ALL = "ticked", "all"
MOST_TICKED = 500
"""More than a page of the list has, for those who write addresses by hand."""


class BulkChangeForm(forms.Form):
    """Which tasks, and what becomes of them. The filters that ALL refers to are a form of their own (TasksForm)."""

    tasks = forms.ChoiceField(
        label=gettext_lazy("Which tasks"),
        choices=[(TICKED, gettext_lazy("the ticked ones")), (ALL, gettext_lazy("all that are found"))],
        initial=TICKED,
    )
    action = forms.ChoiceField(label=gettext_lazy("What to do"), choices=BulkChange.Action.choices)
    priority = forms.IntegerField(
        label=gettext_lazy("New priority"),
        required=False,
        min_value=PRIORITIES[0],
        max_value=PRIORITIES[-1],
        help_text=gettext_lazy("Tasks with a higher number come first. Usual is 0."),
    )

    def __init__(self, data: Any = None) -> None:
        super().__init__(data, label_suffix="")

    def ticked(self) -> list[int]:
        """Returns the public numbers of the ticked tasks; what is no such number is left out."""
        written = self.data.getlist("task")[:MOST_TICKED]  # type: ignore[attr-defined]
        return [int(text) for text in written if text.isascii() and text.isdigit() and len(text) <= len(str(LARGEST))]

    def clean(self) -> dict[str, Any]:
        data = self.cleaned_data
        sets_priority = data.get("action") == BulkChange.Action.PRIORITY
        if sets_priority and data.get("priority") is None and "priority" not in self.errors:
            self.add_error("priority", _("Write the new priority."))
        if not sets_priority:
            # The field stands beside every action, and is not what the others ask for.
            data["priority"] = None
            self.errors.pop("priority", None)
        if data.get("tasks") == TICKED and not self.ticked():
            self.add_error("tasks", _("Tick the tasks in the list first, or choose all that are found."))
        return data
