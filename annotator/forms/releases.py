"""The form of a new release."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from annotator.models import Project
from annotator.releases.particulars import LICENSES, LONGEST_TEXT, LONGEST_TITLE, OTHER, UNKNOWN, Particulars

WORDS = {OTHER: _("another one, described below"), UNKNOWN: _("not chosen yet")}


def _text(label: Any, help_text: Any) -> forms.CharField:
    return forms.CharField(
        label=label,
        help_text=help_text,
        required=False,
        max_length=LONGEST_TEXT,
        widget=forms.Textarea(attrs={"rows": 3}),
    )


class ReleaseForm(forms.Form):
    """What the card of a release says in a manager's words; an empty text becomes a plain sentence."""

    title = forms.CharField(
        label=_("Title"), required=False, max_length=LONGEST_TITLE, help_text=_("Empty: the project's name.")
    )
    license = forms.ChoiceField(label=_("Licence"), choices=[(name, WORDS.get(name, name)) for name in LICENSES])
    notes = _text(_("Notes"), _("What readers should know first, such as where the prompts come from."))
    license_text = _text(_("About the licence"), _("Empty: the name of the licence."))
    intended_use = _text(_("Intended use"), _("Empty: training and judging reward models, and research on ratings."))
    limits = _text(_("Known limits"), _("Empty: what holds for any such data."))
    leave_out_failing = forms.BooleanField(
        label=_("Leave out tasks that fail a check"),
        required=False,
        help_text=_("Otherwise a single secret, path or mark of a redaction in a text refuses the release."),
    )

    rubric_version = forms.TypedChoiceField(
        label=_("Version of the rubric"),
        required=False,
        coerce=int,
        empty_value=None,
        help_text=_("Only labels and ratings that were made under it. All: those of every version."),
    )

    def __init__(self, project: Project, data: Any = None) -> None:
        super().__init__(data, label_suffix="", initial={"license": UNKNOWN})
        versions = [(str(version), str(version)) for version in project.versions_of_attributes()]
        if len(versions) > 1:
            self.fields["rubric_version"].choices = [("", _("All")), *versions]  # type: ignore[attr-defined]
        else:
            del self.fields["rubric_version"]

    def particulars(self) -> Particulars:
        return Particulars(**self.cleaned_data)

    def more_is_written(self) -> bool:
        """Returns whether one of the fields that stand folded away is filled in, or wrong."""
        return any(self.data.get(name) or name in self.errors for name in MORE)

    def more(self) -> list[forms.BoundField]:
        return [self[name] for name in MORE if name in self.fields]


MORE = ("license_text", "intended_use", "limits", "rubric_version", "leave_out_failing")
