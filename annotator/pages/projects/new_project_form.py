"""The forms that create a project: from a rubric and a protocol, or as a copy of another project."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.core.validators import MaxValueValidator, MinValueValidator
from django.forms.models import fields_for_model
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from annotator.managing.guidelines import template
from annotator.managing.preset_rubrics import DEFAULT_RUBRIC
from annotator.managing.presets import LEVELS, NUMBERS, OWN, OWN_TITLE, PRESETS
from annotator.managing.project_settings import LONGEST, free_slug
from annotator.managing.settings_check import deciding_in, scales_of
from annotator.models import Project, Rubric, User

MOST_TASKS = 10_000_000
USUAL_TASKS = 1_000


class NamedProjectForm(forms.Form):
    """A project's name, the slug that follows from it unless somebody types one, and its purpose."""

    name = forms.CharField(
        max_length=120, label=_("Name"), widget=forms.TextInput(attrs={"autofocus": True, "autocomplete": "off"})
    )
    slug = forms.SlugField(
        max_length=LONGEST,
        required=False,
        label=_("Name in addresses"),
        help_text=_("Lower-case letters, digits and hyphens. Leave it empty to have it made from the name."),
        widget=forms.TextInput(attrs={"data-slug-of": "id_name", "autocomplete": "off", "spellcheck": "false"}),
    )
    description = forms.CharField(
        required=False,
        max_length=2_000,
        label=_("Purpose"),
        help_text=_("What the ratings are for. Everybody in the project sees it."),
        widget=forms.Textarea(attrs={"rows": 2}),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.label_suffix = ""

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if not data.get("slug") and "slug" not in self.errors and data.get("name"):
            data["slug"] = free_slug(data["name"])
        return data


ASKED = ("ask_preference", "allow_ties", "ask_safety", "ask_confidence", "ask_feedback", "ask_edit")


def _with_bounds(field: Any, **options: Any) -> Any:
    """Returns a field of a form that may be left empty, and refuses by itself what the model's field refuses."""
    bounds = (one for one in field.validators if isinstance(one, MinValueValidator | MaxValueValidator))
    limits = {bound.code: bound.limit_value for bound in bounds}
    return field.formfield(required=False, **limits, **options)


class NewProjectForm(NamedProjectForm):
    """Everything that a new project needs; the rest of its settings have defaults that can be changed later."""

    rubric = forms.ModelChoiceField(
        Rubric.objects.none(),
        to_field_name="key",
        empty_label=None,
        label=_("Rubric"),
        help_text=_("The scales by which each response is rated. You can rewrite them when the project is there."),
    )
    protocol = forms.ChoiceField(label=_("Protocol"), widget=forms.RadioSelect)
    tasks_planned = forms.IntegerField(
        min_value=0,
        max_value=MOST_TASKS,
        required=False,
        label=_("Tasks you plan"),
        help_text=_("Only for the estimate. You import tasks later."),
    )
    guidelines = forms.CharField(
        required=False,
        label=_("Guidelines"),
        help_text=_("Markdown. Annotators read them before their first task. You can change them at any time."),
        widget=forms.Textarea(attrs={"rows": 18, "class": "tall"}),
    )

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields |= fields_for_model(Project, (*NUMBERS, *ASKED), formfield_callback=_with_bounds)
        rubric, protocol = self.fields["rubric"], self.fields["protocol"]
        assert isinstance(rubric, forms.ModelChoiceField)
        assert isinstance(protocol, forms.ChoiceField)
        rubric.queryset = Rubric.objects.offered_to(user).order_by("name")
        protocol.choices = [*((key, gettext(preset.title)) for key, preset in PRESETS.items()), (OWN, OWN_TITLE)]

    @staticmethod
    def beginning() -> dict[str, Any]:
        """Returns what the form holds before anybody has touched it."""
        usual = {name: Project().serializable_value(name) for name in NUMBERS}
        first = next(iter(PRESETS))
        return usual | {
            "protocol": first,
            "rubric": DEFAULT_RUBRIC,
            "guidelines": template(),
            "ask_preference": True,
            "tasks_planned": USUAL_TASKS,
        }

    def clean(self) -> dict[str, Any]:
        data = super().clean()
        for name in NUMBERS:
            if data.get("protocol") == OWN and name not in self.errors and data.get(name) is None:
                self.add_error(name, gettext("Give a number."))
        return data

    def numbers(self) -> Mapping[str, int] | None:
        """Returns the protocol's numbers, or None where they are not complete.

        The form has been checked; the rest of it may be wrong.
        """
        data = self.cleaned_data
        if data.get("protocol") in PRESETS:
            # Of the attribute that will decide in a new project with the rubric.
            scales = scales_of(data["rubric"]) if data.get("rubric") else {}
            levels = scales[deciding_in(scales)][1] if scales else LEVELS
            return PRESETS[data["protocol"]].numbers_for(levels)
        own = {name: data.get(name) for name in NUMBERS}
        if any(value is None for value in own.values()) or own["max_annotators"] < own["base_annotators"]:  # type: ignore[operator]
            return None
        return own  # type: ignore[return-value]

    def settings(self) -> dict[str, Any]:
        """Returns the settings of the new project, without the guidelines."""
        data, numbers = self.cleaned_data, self.numbers()
        named = {name: data[name] for name in ("slug", "name", "description", "rubric", *ASKED)}
        own = {name: data[name] for name in NUMBERS if data["protocol"] == OWN}
        return {**named, **(numbers or own)}


class CopyProjectForm(NamedProjectForm):
    """A copy of one of the user's projects: its settings, rubric and guidelines, but neither tasks nor members."""

    source = forms.ModelChoiceField(
        Project.objects.none(),
        to_field_name="slug",
        empty_label=None,
        label=_("Copy of"),
        help_text=_("Settings, rubric and guidelines are copied. Tasks, annotations and members are not."),
    )
    field_order = ("source", "name", "slug", "description")

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        source = self.fields["source"]
        assert isinstance(source, forms.ModelChoiceField)
        source.queryset = Project.objects.managed_by(user).order_by("name")
