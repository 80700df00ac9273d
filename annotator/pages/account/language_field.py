"""A language that somebody writes into a form, by its code or its English name."""

from typing import Any

from django import forms
from django.utils.translation import gettext as _

from annotator.reading import languages


def language_code(written: str) -> str:
    """Returns the code of a language that somebody wrote. Raises ValidationError if there is no such language."""
    code = languages.code_of(written)
    if written and not code:
        raise forms.ValidationError(_("Write a language's code, such as de, or its English name."))
    return code


class LanguageField(forms.CharField):
    """A language by its code or its English name; the value is the code."""

    def __init__(self, **options: Any) -> None:
        widget = forms.TextInput(attrs={"list": "languages", "size": 24, "autocapitalize": "none"})
        super().__init__(max_length=60, widget=widget, **options)
        self.suggested = languages.common()

    def clean(self, value: Any) -> str:
        """Returns the code. Raises ValidationError for what names no language."""
        return language_code(super().clean(value))
