"""The forms of a person's own settings: the layout and the keys of the rating page."""

from typing import Any

from django import forms
from django.utils.translation import gettext as _

from annotator.models import User
from annotator.web.keyboard import ACTIONS


class LayoutForm(forms.ModelForm):  # type: ignore[type-arg]
    """Asks whether responses are shown side by side or below each other."""

    class Meta:
        model = User
        fields = ("layout",)


class KeysForm(forms.Form):
    """Asks for one key for each action. No two actions share a key, and none takes a key that every page needs."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, action in ACTIONS.items():
            self.fields[name] = forms.CharField(label=str(action.label), strip=False, validators=[_check_free])

    def clean(self) -> dict[str, Any]:
        cleaned = {name: key.lower() for name, key in self.cleaned_data.items()}
        for name, key in cleaned.items():
            others = [ACTIONS[other].label for other, taken in cleaned.items() if taken == key and other != name]
            if others:
                text = _("%(key)s is also the key for “%(other)s”. Choose another key for one of them.")
                self.add_error(name, text % {"key": key.upper(), "other": others[0]})
        return cleaned


def _check_free(key: str) -> None:
    # Keys are compared in lower case, and that of some letters, such as İ, is longer than one character.
    if len(key) != 1 or len(key.lower()) != 1 or not key.isprintable() or key.isspace():
        raise forms.ValidationError(
            _("Type one letter or symbol. Enter, Tab, Escape, Backspace, Space and the arrow keys cannot be changed.")
        )
    if key.isdigit():
        raise forms.ValidationError(_("Digits are used for rating, so they cannot do anything else."))
