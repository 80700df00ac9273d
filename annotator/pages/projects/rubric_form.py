"""The rubric editor's form: a part for each attribute, in the order in which the parts stand on the page."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django import forms
from django.utils.datastructures import MultiValueDict
from django.utils.text import slugify
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotator.infrastructure.limits import LONGEST_DESCRIPTION, LONGEST_KEY, LONGEST_NAME, MOST_ATTRIBUTES
from annotator.managing.preset_rubrics import AttributeText, RubricText
from annotator.managing.rubrics import LONGEST_RUBRIC_NAME
from annotator.models import Attribute
from annotator.pages.rating.rating_form import likert

_ROW = re.compile(r"a\d{1,4}")


class AttributeForm(forms.Form):
    """One attribute. Levels and boxes are written one to a line."""

    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=LONGEST_NAME,
        required=False,
        widget=forms.TextInput(attrs={"data-names-row": ""}),
    )
    key = forms.CharField(
        label=gettext_lazy("Key"),
        max_length=LONGEST_KEY,
        required=False,
        help_text=gettext_lazy("In exports and REST. Left empty, it is made from the name."),
    )
    weight = forms.FloatField(
        label=gettext_lazy("Weight in the reward"),
        required=False,
        help_text=gettext_lazy(
            "0 leaves the attribute out. If all are empty, the trainer uses HelpSteer2's for its five attributes, and "
            "equal ones for others."
        ),
    )
    description = forms.CharField(
        label=gettext_lazy("Question or description"),
        max_length=LONGEST_DESCRIPTION,
        required=False,
        widget=forms.Textarea(attrs={"rows": 2}),
    )
    levels = forms.CharField(
        label=gettext_lazy("Levels"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 7}),
        help_text=gettext_lazy("2 to 7, one on each line, the lowest first."),
    )
    checks = forms.CharField(
        label=gettext_lazy("Boxes to tick"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text=gettext_lazy("Optional, one on each line, such as “Contains incorrect information”."),
    )
    scope = forms.CharField(required=False, widget=forms.HiddenInput)

    def text(self, boxes: Mapping[str, str]) -> AttributeText:
        """Returns the attribute as it is written. `boxes` holds the keys of boxes that are known, by their texts."""
        fields = self.cleaned_data
        name = fields.get("name", "")
        return AttributeText(
            key=fields.get("key") or key_from(name),
            name=name,
            levels=tuple(_lines(fields.get("levels", ""))),
            description=fields.get("description", ""),
            checks=tuple((boxes.get(line) or key_from(line), line) for line in _lines(fields.get("checks", ""))),
            scope=fields.get("scope") or Attribute.Scope.RESPONSE,
            weight=fields.get("weight"),
        )


def _lines(text: str) -> Iterator[str]:
    return (line.strip() for line in text.splitlines() if line.strip())


def key_from(name: str) -> str:
    """Returns a key made from a name: small letters, digits and underscores."""
    key = slugify(name).replace("-", "_").lstrip("0123456789_")
    return key[:LONGEST_KEY].rstrip("_")


def as_lines(text: RubricText) -> str:
    """Returns a rubric as a text to be compared by line with another."""
    lines = [text.name]
    for one in text.attributes:
        weight = "" if one.weight is None else f" × {one.weight:g}"
        lines += ["", f"{one.name} ({one.key}){weight}", *filter(None, [one.description])]
        lines += [f"{score + 1}: {level}" for score, level in enumerate(one.levels)]
        lines += [f"☐ {box}" for _key, box in one.checks]
    return "\n".join(lines)


class RubricNameForm(forms.Form):
    name = forms.CharField(label=gettext_lazy("Name of the rubric"), max_length=LONGEST_RUBRIC_NAME)


class RubricEditor:
    """The whole form: the rubric's name, and a form for each row that the page names, in its order.

    `boxes` holds the keys of the boxes of the rubric in force by their texts, so that boxes that stay keep their keys.
    """

    def __init__(self, rows: Sequence[str], data: Mapping[str, Any], *, key: str, boxes: Mapping[str, str]) -> None:
        self.key, self.data, self.boxes = key, data, boxes
        self.head = RubricNameForm(data)
        self.rows = [(row, AttributeForm(data, prefix=row)) for row in rows]

    @classmethod
    def of(cls, text: RubricText, *, key: str) -> "RubricEditor":
        """Returns the form filled in with a rubric."""
        rows = [f"a{number}" for number in range(len(text.attributes))]
        data = {"name": text.name}
        for row, attribute in zip(rows, text.attributes, strict=True):
            data |= {f"{row}-{name}": value for name, value in _values(attribute).items()}
        return cls(rows, data, key=key, boxes=_boxes(text))

    @classmethod
    def sent(cls, data: "MultiValueDict[str, str]", *, text: RubricText) -> "RubricEditor":
        """Returns the form as it was sent; `text` is the rubric in force."""
        rows = [row for row in dict.fromkeys(data.getlist("row")) if _ROW.fullmatch(row)]
        return cls(rows[: MOST_ATTRIBUTES + 1], data, key=text.key, boxes=_boxes(text))

    def rearranged(self, action: str, row: str) -> None:
        """Adds a row, or removes or moves one."""
        names = [name for name, _form in self.rows]
        place = names.index(row) if row in names else -1
        if action == "add" and len(self.rows) < MOST_ATTRIBUTES:
            added = f"a{1 + max((int(name[1:]) for name in names), default=-1)}"
            form = AttributeForm(self.data, prefix=added)
            form.fields["name"].widget.attrs["autofocus"] = True
            self.rows.append((added, form))
        elif action == "remove" and place >= 0:
            del self.rows[place]
        elif action in ("up", "down") and place >= 0:
            target = place + (1 if action == "down" else -1)
            if 0 <= target < len(self.rows):
                self.rows[place], self.rows[target] = self.rows[target], self.rows[place]

    def text(self) -> RubricText | None:
        """Returns the rubric as it is written, or None if a field cannot be read."""
        forms_are_valid = [form.is_valid() for form in (self.head, *(form for _row, form in self.rows))]
        if not all(forms_are_valid):
            return None
        attributes = tuple(form.text(self.boxes) for _row, form in self.rows)
        return RubricText(self.key, self.head.cleaned_data["name"], attributes)

    def refuse(self, errors: Mapping[str, Sequence[str]]) -> None:
        """Shows what is wrong beside the fields that it is about."""
        for place, texts in errors.items():
            match = re.fullmatch(r"attributes\.(\d+)\.(\w+)", place)
            if match and int(match[1]) < len(self.rows):
                self.rows[int(match[1])][1].add_error(match[2], list(texts))
            else:
                self.head.add_error("name" if place == "name" else None, list(texts))

    def preview(self) -> "PreviewForm":
        """Returns the annotator's scales for the attributes that can be shown already."""
        texts = [form.text(self.boxes) for _row, form in self.rows if form.is_valid()]
        return PreviewForm(
            Attribute(
                key=f"row{number}",
                name=text.name or _("Attribute %(number)s") % {"number": number},
                description=text.description,
                levels=list(text.levels),
                checks=[list(pair) for pair in text.checks],
            )
            for number, text in enumerate(texts, 1)
            if text.levels
        )


class PreviewForm(forms.Form):
    """The scales of one response as annotators see them; nothing of it is sent."""

    def __init__(self, attributes: Iterator[Attribute]) -> None:
        super().__init__(auto_id="preview-%s")
        self.attributes = list(attributes)
        for attribute in self.attributes:
            self.fields[attribute.key] = likert(attribute, "A")
            boxes = forms.MultipleChoiceField(choices=attribute.shown_checks, widget=forms.CheckboxSelectMultiple)
            if attribute.checks:
                self.fields[f"checks-{attribute.key}"] = boxes

    @property
    def first_box_digit(self) -> int:
        return 1 + max((len(attribute.levels) for attribute in self.attributes), default=0)

    def scales(self) -> list[dict[str, Any]]:
        """Returns what the template shows of each attribute, as RatingForm.sheets does."""
        return [
            {
                "attribute": attribute,
                "field": self[attribute.key],
                "checks": self[f"checks-{attribute.key}"] if attribute.checks else None,
            }
            for attribute in self.attributes
        ]


def _boxes(text: RubricText) -> dict[str, str]:
    return {line: box for attribute in text.attributes for box, line in attribute.checks}


def _values(text: AttributeText) -> dict[str, str]:
    """Returns the values of an attribute's fields. Texts are shown as they are stored: their translations are not."""
    return {
        "name": text.name,
        "key": text.key,
        "weight": "" if text.weight is None else f"{text.weight:g}",
        "description": text.description,
        "levels": "\n".join(text.levels),
        "checks": "\n".join(box for _key, box in text.checks),
        "scope": text.scope,
    }
