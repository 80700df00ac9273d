"""Passing a task by: a skip, a report."""

from django import forms

from annotator.models import SkipReason, UnsafeCategory


class SkipForm(forms.Form):
    """Why the task is passed by."""

    reason = forms.ChoiceField(
        choices=SkipReason.choices, widget=forms.RadioSelect, error_messages={"required": "Choose a reason to skip."}
    )
    note = forms.CharField(required=False, max_length=5_000)


class ReportForm(forms.Form):
    """What is unsafe."""

    category = forms.ChoiceField(
        choices=UnsafeCategory.choices,
        widget=forms.RadioSelect,
        error_messages={"required": "Choose what is unsafe about it."},
    )
    note = forms.CharField(required=False, max_length=5_000)
