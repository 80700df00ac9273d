"""The form in which managers write guidelines."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy

from annotator.projects.guidelines import LONGEST_GUIDELINES


class GuidelinesForm(forms.Form):
    """Asks for a text in markdown, and knows which version it changes."""

    text = forms.CharField(
        label=gettext_lazy("Text in markdown"),
        max_length=LONGEST_GUIDELINES,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 24, "class": "tall", "dir": "auto"}),
        help_text=gettext_lazy("# begins a heading, - an item of a list; **bold**, *italic*, `code`, [text](address)."),
    )
    based_on = forms.IntegerField(min_value=0, max_value=2**31 - 1, widget=forms.HiddenInput)

    def __init__(self, data: Any = None, *, text: str = "", version: int = 0) -> None:
        super().__init__(data, initial={"text": text, "based_on": version})
