"""The forms by which an annotator skips or reports a task."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from annotator.infrastructure.limits import LONGEST_NOTE
from annotator.models import SkipReason, Task, UnsafeCategory
from annotator.stages.pii import quotations
from annotator.stages.pii.highlights import Mark


class SkipForm(forms.Form):
    """Asks why the task is skipped, and what is personal if that is the reason. Nothing is ticked beforehand."""

    reason = forms.ChoiceField(
        choices=SkipReason.choices, widget=forms.RadioSelect, error_messages={"required": _("Choose a reason to skip.")}
    )
    spans = forms.TypedMultipleChoiceField(coerce=int, required=False, widget=forms.CheckboxSelectMultiple)
    quotes = forms.CharField(required=False, max_length=20_000, widget=forms.Textarea(attrs={"rows": 3}))
    note = forms.CharField(required=False, max_length=LONGEST_NOTE)

    def __init__(self, task: Task, marks: list[Mark], *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.task = task
        self.fields["spans"].choices = [(mark.span, mark) for mark in marks]  # type: ignore[attr-defined]

    def clean_quotes(self) -> list[str]:
        """Returns the quotes, one from each line. Raises ValidationError for a line that is nowhere in the task."""
        quotes = [line.strip() for line in self.cleaned_data["quotes"].splitlines() if line.strip()]
        try:
            quotations.check_quotes(quotes, self.task)
        except quotations.NotInTheText as missing:
            raise forms.ValidationError(missing.errors["quotes"]) from missing
        return quotes

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        # A missing reason has its own error.
        marked = data.get("spans") or data.get("quotes")
        if marked and data.get("reason", SkipReason.PII) != SkipReason.PII:
            self.add_error("reason", str(quotations.MarksWithoutReason()))
        return data


class ReportForm(forms.Form):
    """Asks what is unsafe about a task."""

    category = forms.ChoiceField(
        choices=UnsafeCategory.choices,
        widget=forms.RadioSelect,
        error_messages={"required": _("Choose what is unsafe about it.")},
    )
    note = forms.CharField(required=False, max_length=LONGEST_NOTE)
