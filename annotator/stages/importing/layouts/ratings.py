"""Reads ratings of tasks that are there already: Potato's annotations, tables of scores, and our own annotations."""

import json
from collections.abc import Collection, Iterable, Mapping
from pathlib import PurePath
from typing import Any

from annotator.infrastructure.limits import MOST_RESPONSES
from annotator.models.annotation import PREFERENCES
from annotator.stages.importing.field_checks import (
    BadRow,
    identifier,
    level,
    moment_of,
    required,
    seconds_of,
    shown,
    whole,
    whole_of_cell,
)
from annotator.stages.importing.layouts.tools import ToolAnswer, annotation_of
from annotator.stages.importing.task_rows import GivenAnnotation, ImportRules, TaskRow

TASKS = ("task", "task_id", "item_id", "item", "instance_id", "example_id")
RATERS = ("annotator", "annotator_id", "rater", "rater_id", "user", "user_id", "worker_id")
SCORES = ("value", "score", "rating", "label")
SCORES_LAYOUT, POTATO_LAYOUT, ANNOTATIONS_LAYOUT = "ratings", "potato", "annotations"
_OF_ONE_PERSON = ("annotated_instances.jsonl", "annotated_instances.tsv", "annotated_instances.csv")
READ = {*TASKS, *RATERS, *SCORES, "attribute", "response", "label_annotations"}
READ_OF_ANNOTATIONS = {
    *("revision", "position", "scores", "preference", "justification", "submitted_at", "active_seconds", "counts"),
    *("origin", "guideline_version", "rubric_version", "verdict", "extra", "evidence"),
}
NO_RATER = "user_id"
"""The field of a refusal because nobody is named who rated."""
BETWEEN = ":::"
"""Stands between a scheme and its label in the columns of Potato's tables."""


def is_potato(values: Mapping[str, Any]) -> bool:
    if "instance_id" in values:
        return "label_annotations" in values or any(BETWEEN in name for name in values)
    return "label_annotations" in values and "id" in values


def person_of(file_name: str) -> str:
    """Returns whose annotations a file holds: Potato writes one for each person, in a folder of that name."""
    path = PurePath(file_name.replace("\\", "/"))
    return path.parent.name if path.name in _OF_ONE_PERSON else ""


def potato_row(values: dict[str, Any], rules: ImportRules) -> TaskRow:
    """Reads one person's annotation of one item, whose schemes are named by attributes. Raises BadRow.

    Potato counts the points of a scale from 1.
    """
    given = values.get("label_annotations")
    if given is None:
        given = {}
        for name, value in values.items():
            scheme, between, label = name.partition(BETWEEN)
            if between and value not in ("", None):
                given.setdefault(scheme, {})[label] = value
    if not isinstance(given, dict):
        raise BadRow(f"label_annotations is {shown(given)}: it must be an object", "label_annotations")
    answers = [ToolAnswer(str(scheme), _chosen(labels)) for scheme, labels in given.items()]
    numbers = [int(n) for n in (name.rpartition("_")[2] for name in given) if n.isdecimal() and len(n) < 3]
    names = [f"response_{number}" for number in range(1, max(numbers, default=1) + 1)]
    if any(answer.question == "preference" for answer in answers):
        names = ["response_1", "response_2"]
    rater = _rater(values, rules)
    if not rater:
        what = "the row does not say who rated: add a column user_id, or give one name for the whole file"
        how = 'the import page asks for it, and the mapping {"rated_by": "NAME"} gives it to REST, client and command'
        raise BadRow(f"{what}; {how}", NO_RATER)
    annotation, _ = annotation_of(rater, answers, names, rules, "label_annotations")
    if annotation is None:
        schemes = ", ".join(map(shown, list(given)[:5])) or "none"
        raise BadRow(f"no scheme is named by an attribute of the project; there are {schemes}", "label_annotations")
    if "instance_id" not in values:
        values = {**values, "instance_id": values["id"]}
    if values.get("id") == values["instance_id"]:
        values = {**values, "id": ""}
    return _row(values, annotation)


def _chosen(labels: Any) -> Any:
    """Returns the label of a scheme that is chosen: its value, or its name where the value only says yes."""
    if not isinstance(labels, dict):
        return labels
    for label, value in labels.items():
        if value not in (None, "", False):
            return label if value is True or not str(value).strip().isdecimal() else value
    return None


def is_score(values: Mapping[str, Any]) -> bool:
    return "attribute" in values and any(name in values for name in TASKS) and any(name in values for name in SCORES)


def score_row(values: dict[str, Any], rules: ImportRules) -> TaskRow:
    """Reads one person's score of one attribute. The rows of one task and person are one rating (grouping.py).

    `response` is the response's number from 1, and may be left out for tasks of one response. Raises BadRow.
    """
    attribute, value = required(values, "attribute"), _named(values, SCORES)
    if attribute not in rules.attributes:
        known = ", ".join(rules.attributes)
        raise BadRow(f"attribute is {shown(attribute)}: the project has {known}", "attribute")
    levels, number = rules.attributes[attribute], str(whole_of_cell(values.get("response") or 1))
    value = str(whole_of_cell(value))
    if not value.strip().isdecimal() or not 1 <= int(value.strip()[:3]) <= levels:
        raise BadRow(f"the score is {shown(value)}: the levels of {attribute} go from 1 to {levels}", "value")
    if not number.isdecimal() or not 1 <= int(number[:3]) <= 26:
        raise BadRow(f"response is {shown(number)}: it must be the response's number from 1", "response")
    ratings = {int(number[:3]) - 1: {attribute: int(value.strip()[:3]) - 1}}
    return _row(values, GivenAnnotation(_rater(values, rules), ratings))


def is_annotation(values: Mapping[str, Any]) -> bool:
    return values.keys() >= {"task", "response", "annotator", "position"} and "segment" not in values


def annotation_row(values: dict[str, Any], rules: ImportRules) -> TaskRow:
    """Reads one person's rating of one response from our own export of annotations. Scores count from 0 there.

    Ratings that do not count there are refused. Raises BadRow.
    """
    if values.get("counts") in (False, "false", "False"):
        raise BadRow("the rating does not count where it was exported", "counts")
    position = whole_of_cell(values["position"])
    if type(position) is not int or not 0 <= position < MOST_RESPONSES:
        raise BadRow(f"position is {shown(values['position'])}: it must be the response's place from 0", "position")
    scores = values.get("scores")
    if not isinstance(scores, dict):
        scores = {key: values.get(f"scores.{key}", values.get(key)) for key in rules.attributes}
    given = {
        key: level(whole_of_cell(value), f"scores.{key}", rules.attributes[key])
        for key, value in scores.items()
        if key in rules.attributes and value not in (None, "")
    }
    strength = whole_of_cell(values.get("preference"))
    annotation = GivenAnnotation(
        _rater(values, rules),
        {position: given},
        strength if type(strength) is int and strength in PREFERENCES and (strength or rules.ties) else None,
        justification=str(values.get("justification") or ""),
        submitted_at=moment_of(values.get("submitted_at")),
        active_seconds=seconds_of(values.get("active_seconds")),
        evidence={position: evidence} if (evidence := _evidence(values.get("evidence"), rules)) else {},
    )
    return _row(values, annotation, READ_OF_ANNOTATIONS)


def _evidence(given: Any, rules: ImportRules) -> tuple[tuple[str, int, int, str], ...]:
    """Reads a list of evidence for the project's attributes; the text is not known here. Raises BadRow."""
    if given in (None, "", []):
        return ()
    try:
        listed = json.loads(given) if isinstance(given, str) else given
        read = tuple((one["attribute"], one["start"], one["end"], one.get("note") or "") for one in listed)
    except (ValueError, TypeError, KeyError, AttributeError):
        read = ((None, None, None, None),)
    if [one for one in read if [*map(type, one)] != [str, int, int, str]]:
        raise BadRow(
            f"evidence is {shown(given)}: it must be a list of objects with attribute, start, end and any note",
            "evidence",
        )
    return tuple(one for one in read if one[0] in rules.attributes)


def _row(values: Mapping[str, Any], annotation: GivenAnnotation, read: Iterable[str] = ()) -> TaskRow:
    name = identifier(_named(values, TASKS), "the task's id")
    if not name:
        raise BadRow(f"the task's id is missing: give it in one of {', '.join(TASKS)}", TASKS[0])
    return TaskRow(
        messages=[],
        responses=(),
        external_id=name,
        annotations=(annotation,),
        refers=True,
        notes=unread(values, {*READ, *read}),
    )


def unread(values: Mapping[str, Any], read: Iterable[str]) -> tuple[str, ...]:
    """Returns a note for each column that a row of ratings has and that nothing reads."""
    others = sorted(name for name in values.keys() - {*read} if BETWEEN not in name and values[name] not in ("", None))
    return tuple(f"The column {name[:60]} is not read: its rows rate tasks that are there already." for name in others)


def names_nobody(layout: str, columns: Collection[str]) -> bool:
    """Returns whether rows of this layout rate tasks that are there already, and none of the columns says who rated."""
    return layout in (POTATO_LAYOUT, SCORES_LAYOUT) and not {*RATERS} & {*columns}


def _rater(values: Mapping[str, Any], rules: ImportRules) -> str:
    """Returns who rated: the person whom the row names, or else the one whose ratings the whole file holds."""
    return _named(values, RATERS) or rules.person


def _named(values: Mapping[str, Any], names: tuple[str, ...]) -> str:
    """Returns the first of these fields that the row has, as text."""
    return next((str(whole(values[name])) for name in names if values.get(name) not in (None, "")), "")
