"""The forms of the tab Data: which tasks to list, and what to export."""

from collections.abc import Mapping
from datetime import datetime, time
from typing import Any

from django import forms
from django.forms.boundfield import BoundWidget
from django.utils.timezone import make_aware
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotator.exporting.rows import FORMATS, LAYOUTS
from annotator.models import Import, Project, Task
from annotator.projects import languages
from annotator.search.criteria import DROPPED, LABELLED, LONGEST_TEXT, UNLABELLED, Criteria

IMPORTS_SHOWN = 50
LAYOUT_TEXTS = {
    "helpsteer2": gettext_lazy(
        "A row for each labelled response, with its agreed scores. For training a reward model."
    ),
    "disagreements": gettext_lazy(
        "A row for each rated response, with the scores of all its raters side by side. For studying agreement."
    ),
    "annotations": gettext_lazy(
        "A row for each annotation and response, with pseudonyms of the raters and everything that they answered. For "
        "analyses of your own, and as a backup of the ratings."
    ),
    "rankings": gettext_lazy(
        "A row for each ranked task, with the combined ranking and that of each annotator. For preference data of "
        "three or more responses."
    ),
}
FORMAT_TEXTS = {"jsonl": gettext_lazy("JSON lines"), "csv": "CSV"}
_MANAGERS = ("model", "reward_from", "reward_to")


class TasksForm(forms.Form):
    """Filters of the list of tasks. Reviewers do not see models and rewards, so they cannot filter by them."""

    q = forms.CharField(
        label=gettext_lazy("Words in the texts, or the task's id"),
        required=False,
        max_length=LONGEST_TEXT,
        widget=forms.TextInput(attrs={"type": "search", "autocomplete": "off", "spellcheck": "false"}),
        help_text=gettext_lazy("Whole words. “Quoted words” stand next to each other, a minus leaves a word out."),
    )
    state = forms.ChoiceField(label=gettext_lazy("State"), required=False)
    label = forms.ChoiceField(
        label=gettext_lazy("Label"),
        required=False,
        choices=[
            ("", gettext_lazy("Any")),
            (LABELLED, gettext_lazy("Has a label")),
            (DROPPED, gettext_lazy("Dropped")),
            (UNLABELLED, gettext_lazy("No label yet")),
        ],
    )
    spread = forms.TypedChoiceField(label=gettext_lazy("Spread"), required=False, coerce=int, empty_value=None)
    language = forms.CharField(label=gettext_lazy("Language"), required=False, max_length=40)
    source = forms.TypedChoiceField(label=gettext_lazy("Import"), required=False, coerce=int, empty_value=None)
    model = forms.CharField(label=gettext_lazy("Model of a response"), required=False, max_length=200)
    reward_from = forms.FloatField(label=gettext_lazy("Reward from"), required=False)
    reward_to = forms.FloatField(label=gettext_lazy("Reward to"), required=False)

    def __init__(self, project: Project, data: Any, *, manages: bool) -> None:
        super().__init__(data, label_suffix="")
        self.project = project
        if not manages:
            for name in _MANAGERS:
                del self.fields[name]
        states = [(value, str(name)) for value, name in Task.State.choices if value != Task.State.GOLD]
        self._offer("state", [("", _("Any")), *states])
        widest = max((len(attribute.levels) for attribute in project.attributes_for()), default=1) - 1
        spreads = [(str(spread), _("At least %(spread)s") % {"spread": spread}) for spread in range(1, widest + 1)]
        self._offer("spread", [("", _("Any")), *spreads])
        self._offer("source", [("", _("Any")), *self._imports()])

    def _offer(self, field: str, choices: list[tuple[str, str]]) -> None:
        self.fields[field].choices = choices  # type: ignore[attr-defined]

    def _imports(self) -> list[tuple[str, str]]:
        """Returns the newest imports that made tasks, and the one that is asked for."""
        made = Import.objects.filter(project=self.project, created__gt=0).order_by("-pk")
        rows = list(made[:IMPORTS_SHOWN])
        wanted = str(self.data.get("source", ""))
        if wanted.isascii() and wanted.isdigit() and len(wanted) < 19 and int(wanted) not in {row.pk for row in rows}:
            rows += list(made.filter(pk=int(wanted)))
        return [(str(row.pk), f"{row} ({row.made_at:%Y-%m-%d})") for row in rows]

    def clean_language(self) -> str:
        written = str(self.cleaned_data["language"]).strip()
        code = languages.code_of(written)
        if written and not code:
            raise forms.ValidationError(_("Write a language's code, such as de, or its English name."))
        return code

    def clean(self) -> dict[str, Any]:
        least, most = self.cleaned_data.get("reward_from"), self.cleaned_data.get("reward_to")
        if least is not None and most is not None and least > most:
            self.add_error("reward_to", _("This is less than the lower end."))
        return self.cleaned_data

    def criteria(self) -> Criteria:
        """Returns what a valid form asks for."""
        data = self.cleaned_data
        return Criteria(
            text=data["q"].strip(),
            state=data["state"],
            language=data["language"],
            label=data["label"],
            spread=data["spread"],
            model=str(data.get("model", "")).strip(),
            source=data["source"],
            least_reward=data.get("reward_from"),
            most_reward=data.get("reward_to"),
        )

    def more_is_chosen(self) -> bool:
        """Returns whether one of the filters is in use that stand folded away."""
        return any(self.data.get(name) for name in ("language", "source", *_MANAGERS))


class ExportForm(forms.Form):
    """What to export. Every layout says what it is for."""

    layout = forms.ChoiceField(
        label=gettext_lazy("Layout"), widget=forms.RadioSelect, choices=[(name, name) for name in LAYOUTS]
    )
    format = forms.ChoiceField(
        label=gettext_lazy("Format"),
        choices=[(name, FORMAT_TEXTS.get(name, name)) for name in FORMATS],
        help_text=gettext_lazy("JSON lines keep texts and lists as they are. CSV opens in a spreadsheet."),
    )
    since = forms.DateField(
        label=gettext_lazy("Only what is new since"),
        required=False,
        widget=forms.DateInput(attrs={"type": "date"}),
        help_text=gettext_lazy("Leave it empty for everything."),
    )

    def __init__(self, data: Mapping[str, str]) -> None:
        # Bound from the start: the page opens with a preview.
        first = {"layout": next(iter(LAYOUTS)), "format": next(iter(FORMATS))}
        super().__init__({**first, **{name: data[name] for name in data}}, label_suffix="")

    def moment(self) -> datetime | None:
        """Returns the beginning of the chosen day, where the reader is."""
        day = self.cleaned_data["since"]
        return make_aware(datetime.combine(day, time.min)) if day else None

    def layouts(self) -> list[tuple[BoundWidget, str]]:
        """Returns the radio buttons of the layouts, each with what the layout is for."""
        return [(button, str(LAYOUT_TEXTS.get(button.data["value"], ""))) for button in self["layout"]]
