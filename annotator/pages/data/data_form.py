"""The forms of the tab Data: which tasks to list, and what to export."""

from collections.abc import Iterable, Mapping
from typing import Any

from django import forms
from django.forms.boundfield import BoundWidget
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotator.infrastructure.web.query_parameters import as_number
from annotator.models import Import, Label, Project, Task, User
from annotator.outputs.exporting.export_rows import layouts_for
from annotator.outputs.exporting.file_formats import FORMATS
from annotator.outputs.exporting.filters import STATES, Filters, beginning_of, end_of, fields_from
from annotator.outputs.exporting.layouts import LAYOUTS
from annotator.pages.account.language_field import language_code
from annotator.reading.search.criteria import DROPPED, LABELLED, LONGEST_TEXT, UNLABELLED, Criteria
from annotator.reading.search.listing import Order

IMPORTS_SHOWN = 50
LAYOUT_TEXTS = {
    "helpsteer2": gettext_lazy(
        "A row for each labelled response, with its agreed scores, rounded to whole levels. For training a reward "
        "model."
    ),
    "labels": gettext_lazy(
        "The same with ids, language and the model that wrote the response, and the means before they are rounded. For "
        "analyses of your own."
    ),
    "disagreements": gettext_lazy(
        "A row for each rated response, with the scores of all its raters side by side. For studying agreement."
    ),
    "preference": gettext_lazy(
        "A row for each task of two responses with a preference, in the fields of HelpSteer2-Preference, with the "
        "reasons that people gave."
    ),
    "helpsteer3": gettext_lazy("The same in the fields of HelpSteer3: the conversation as messages."),
    "helpsteer3_edit": gettext_lazy(
        "A row for each better version of a response that somebody has written, in the fields of HelpSteer3's edits."
    ),
    "dpo": gettext_lazy(
        "One row per pair of responses with a known winner (from a ranking, a preference or labels): prompt, chosen "
        "and rejected as TRL's trainers take them, with a margin."
    ),
    "nemo": gettext_lazy(
        "A row for each task whose responses are told apart, as NeMo RL's trainers take it: completions with ranks."
    ),
    "annotations": gettext_lazy(
        "A row for each annotation and response, with pseudonyms of the raters and everything that they answered. For "
        "analyses of your own, and as a backup of the ratings."
    ),
    "wide": gettext_lazy(
        "A row for each annotation, with the scores of all its responses in columns. For spreadsheets."
    ),
    "rankings": gettext_lazy(
        "A row for each ranked task, with the combined ranking and that of each annotator. For preference data of "
        "three or more responses."
    ),
    "label_studio": gettext_lazy(
        "A row for each rated task as Label Studio imports it, with everybody's ratings. Choose one JSON list."
    ),
    "argilla": gettext_lazy(
        "A record for each task with a label or a preference as Argilla imports it, with these as suggestions. Choose "
        "one JSON list."
    ),
    "segments": gettext_lazy(
        "A row for each segment and rater, and for each segment with a label: its place, its text and its scores. For "
        "studying agreement, and as a backup of the ratings."
    ),
    "helpsteer2d": gettext_lazy(
        "A row for each response whose segments have labels, with the segments and a list of levels for each aspect. "
        "For training a reward model of segments."
    ),
    "stepwise": gettext_lazy(
        "A row for each response, with its segments as steps that are good or not by the deciding aspect, as TRL's "
        "process reward trainer takes it."
    ),
    "spans": gettext_lazy(
        "A row for each response with words on which scores are based, in the form of FineGrainedRLHF. For studies, "
        "and for rewards of parts of a response."
    ),
    "scores": gettext_lazy("A row for each response that the reward model in use has scored, with its reward."),
}
FORMAT_TEXTS = {
    "jsonl": gettext_lazy("JSON lines"),
    "json": gettext_lazy("One JSON list"),
    "csv": "CSV",
    "parquet": "Parquet",
    "zip": gettext_lazy("HelpSteer2's set of files (zip)"),
}
LABEL_SOURCES = {
    Label.Source.CONSENSUS: gettext_lazy("Annotators agreed"),
    Label.Source.ADJUDICATED: gettext_lazy("A reviewer settled them"),
    Label.Source.IMPORTED: gettext_lazy("They were imported"),
}
PART = ("since", "until", "state", "language", "source", "label_source", "rubric_version", "only")
"""The fields by which an export takes only a part."""
_MANAGERS = ("model", "reward_from", "reward_to")


class PartForm(forms.Form):
    """What both forms ask of tasks, and refuse alike."""

    state = forms.ChoiceField(label=gettext_lazy("State"), required=False)
    language = forms.CharField(label=gettext_lazy("Language"), required=False, max_length=40)
    source = forms.TypedChoiceField(label=gettext_lazy("Import"), required=False, coerce=int, empty_value=None)

    def __init__(self, project: Project, data: Any, *, states: Iterable[Task.State]) -> None:
        super().__init__(data, label_suffix="")
        self.offer("state", [("", _("Any")), *((state.value, str(state.label)) for state in states)])
        # The newest imports that made tasks, and the wanted one.
        made = Import.objects.filter(project=project, created__gt=0).order_by("-pk")
        rows, wanted = list(made[:IMPORTS_SHOWN]), as_number(str(self.data.get("source", "")))
        if wanted is not None and wanted not in {row.pk for row in rows}:
            rows += list(made.filter(pk=wanted))
        self.offer("source", [("", _("Any")), *((str(row.pk), f"{row} ({row.made_at:%Y-%m-%d})") for row in rows)])

    def offer(self, field: str, choices: list[tuple[str, str]]) -> None:
        self.fields[field].choices = choices  # type: ignore[attr-defined]

    def clean_language(self) -> str:
        return language_code(self.cleaned_data["language"])

    def refuse_reversed(self, first: str, last: str, text: str) -> None:
        """Shows the text at the second of two fields if its value is below that of the first."""
        low, high = self.cleaned_data.get(first), self.cleaned_data.get(last)
        if low is not None and high is not None and low > high:
            self.add_error(last, text)


class TasksForm(PartForm):
    """Filters of the list of tasks. Reviewers do not see models and rewards, so they cannot filter by them."""

    q = forms.CharField(
        label=gettext_lazy("Words in the texts, or the task's id"),
        required=False,
        max_length=LONGEST_TEXT,
        widget=forms.TextInput(attrs={"type": "search", "autocomplete": "off", "spellcheck": "false"}),
        help_text=gettext_lazy("Whole words. “Quoted words” stand next to each other, a minus leaves a word out."),
    )
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
    model = forms.CharField(label=gettext_lazy("Model of a response"), required=False, max_length=200)
    reward_from = forms.FloatField(label=gettext_lazy("Reward from"), required=False)
    reward_to = forms.FloatField(label=gettext_lazy("Reward to"), required=False)
    order = forms.TypedChoiceField(
        label=gettext_lazy("Order"),
        required=False,
        coerce=Order,
        empty_value=Order.NEWEST,
        choices=[
            ("", gettext_lazy("Newest first")),
            (Order.OLDEST, gettext_lazy("Oldest first")),
            (Order.SPREAD, gettext_lazy("Widest spread first")),
            (Order.MOST_RATED, gettext_lazy("Most ratings first")),
            (Order.LEAST_RATED, gettext_lazy("Fewest ratings first")),
            (Order.PRIORITY, gettext_lazy("Highest priority first")),
        ],
    )

    def __init__(self, project: Project, data: Any, *, manages: bool) -> None:
        super().__init__(project, data, states=[state for state in Task.State if state != Task.State.GOLD])
        if not manages:
            for name in _MANAGERS:
                del self.fields[name]
        widest = max((len(attribute.levels) for attribute in project.attributes_for()), default=1) - 1
        spreads = [(str(spread), _("At least %(spread)s") % {"spread": spread}) for spread in range(1, widest + 1)]
        self.offer("spread", [("", _("Any")), *spreads])

    def clean(self) -> dict[str, Any]:
        self.refuse_reversed("reward_from", "reward_to", _("This is less than the lower end."))
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

    def order_chosen(self) -> Order:
        """Returns what a valid form wants to see first."""
        order: Order = self.cleaned_data["order"]
        return order

    def more_is_chosen(self) -> bool:
        """Returns whether one of the filters is in use that stand folded away."""
        return any(self.data.get(name) for name in ("language", "source", *_MANAGERS))


class ExportForm(PartForm):
    """What to export. Every layout says what it is for."""

    layout = forms.ChoiceField(
        label=gettext_lazy("Layout"), widget=forms.RadioSelect, choices=[(name, name) for name in LAYOUTS]
    )
    format = forms.ChoiceField(
        label=gettext_lazy("Format"),
        choices=[(name, FORMAT_TEXTS.get(name, name)) for name in FORMATS],
        help_text=gettext_lazy(
            "JSON lines and Parquet keep texts and lists as they are. CSV opens in a spreadsheet; its lists are JSON."
        ),
    )
    gzip = forms.BooleanField(label=gettext_lazy("Packed (gzip)"), required=False)
    since = forms.DateField(
        label=gettext_lazy("Made since"),
        required=False,
        widget=forms.DateInput(attrs={"type": "date"}),
        help_text=gettext_lazy("Leave it empty for everything."),
    )
    until = forms.DateField(
        label=gettext_lazy("Made until"),
        required=False,
        widget=forms.DateInput(attrs={"type": "date"}),
        help_text=gettext_lazy("This day is part of it."),
    )
    state = forms.ChoiceField(label=gettext_lazy("State of the task"), required=False)
    label_source = forms.ChoiceField(label=gettext_lazy("Where labels come from"), required=False)
    rubric_version = forms.TypedChoiceField(
        label=gettext_lazy("Version of the rubric"),
        required=False,
        coerce=int,
        empty_value=None,
        help_text=gettext_lazy("Only what was rated under it. All: with the attributes of every version."),
    )
    only = forms.CharField(
        label=gettext_lazy("Fields"),
        required=False,
        max_length=1_000,
        help_text=gettext_lazy("Their names, with commas between them, as the preview shows them. Empty: all."),
    )

    def __init__(self, project: Project, data: Mapping[str, str], *, by: User) -> None:
        # Bound from the start: the page opens with a preview.
        # Where nobody rates whole responses, labels of these have no scores.
        usual = next(iter(LAYOUTS)) if project.attributes_for() else "helpsteer2d"
        first = {"layout": usual, "format": next(iter(FORMATS))}
        super().__init__(project, {**first, **{name: data[name] for name in data}}, states=STATES)
        self.offer("layout", [(name, name) for name in layouts_for(project, by)])
        sources = [(str(name), str(LABEL_SOURCES[name])) for name in Label.Source]
        self.offer("label_source", [("", _("Anywhere")), *sources])
        versions = project.versions_of_attributes()
        if len(versions) > 1:
            self.offer("rubric_version", [("", _("All")), *((str(one), str(one)) for one in versions)])
        else:
            del self.fields["rubric_version"]

    def clean_only(self) -> tuple[str, ...]:
        return fields_from({"fields": self.cleaned_data["only"]})

    def clean(self) -> dict[str, Any]:
        self.refuse_reversed("since", "until", _("This is before the first day."))
        return self.cleaned_data

    def export(self) -> dict[str, Any]:
        """Returns what a valid form asks for, as the export takes it. Days begin and end where the reader is."""
        data = self.cleaned_data
        filters = Filters(
            since=beginning_of(data["since"]),
            until=end_of(data["until"]),
            state=data["state"],
            language=data["language"],
            source=data["source"],
            label_source=data["label_source"],
            rubric_versions=(data["rubric_version"],) if data.get("rubric_version") else (),
        )
        what = {name: data[name] for name in ("layout", "format", "gzip")}
        return {**what, "filters": filters, "fields": data["only"]}

    def chosen(self) -> list[tuple[str, str]]:
        """Returns what is filled in, by which the same form can be sent or addressed again."""
        return [(name, self.data[name]) for name in self.fields if self.data.get(name)]

    def more_is_chosen(self) -> bool:
        """Returns whether one of the filters is in use, which stand folded away."""
        return any(self.data.get(name) for name in PART)

    def layouts(self) -> list[tuple[BoundWidget, str]]:
        """Returns the radio buttons of the layouts, each with what the layout is for."""
        return [(button, str(LAYOUT_TEXTS.get(button.data["value"], ""))) for button in self["layout"]]
