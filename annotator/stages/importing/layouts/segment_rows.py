"""Reads our own export of segments, a row for each segment, and finds the stored responses that the rows are about."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from annotator.infrastructure.limits import MOST_SEGMENTS
from annotator.models import Project, Response, Task
from annotator.stages.importing.field_checks import BadRow, identifier, shown, whole_of_cell
from annotator.stages.importing.layouts.ratings import unread
from annotator.stages.importing.task_rows import (
    GivenAnnotation,
    GivenSegment,
    GivenSegments,
    ImportRules,
    Placed,
    Rejected,
    ResponseRow,
    SegmentLabel,
    SegmentSheet,
    TaskRow,
)
from annotator.stages.segmenting import NotAPartition, Range, partition, ranges

_NUMBERS = ("segment", "start", "end")
READ = {"task", "response", "annotator", "text", "scores", *_NUMBERS}


def segment_row(values: dict[str, Any], rules: ImportRules) -> TaskRow:
    """Reads a row of the layout *segments*, in which scores count from 0. Raises BadRow."""
    if not rules.aspects:
        raise BadRow("this project rates no segments: its rubric has no attribute of segments", "segment")
    rater = str(values.get("annotator") or "")
    if rater and rules.attributes:
        what = "this project asks for scores of whole responses too, which rows of segments do not have"
        raise BadRow(f"{what}: import rows without an annotator, which are labels", "annotator")
    task, response = identifier(values["task"], "task"), identifier(str(values["response"] or ""), "response")
    if not task or not response:
        raise BadRow("the task or the response is missing: give their ids", "response" if task else "task")
    index, start, end = (_number(values[name], name) for name in _NUMBERS)
    scores = values.get("scores")
    if scores is None:
        scores = {aspect: values[aspect] for aspect in rules.aspects if aspect in values}
    if not isinstance(scores, dict):
        raise BadRow(f"scores is {shown(scores)}: it must be an object of aspects and levels", "scores")
    if unknown := [name for name in scores if name not in rules.aspects]:
        known = ", ".join(rules.aspects)
        raise BadRow(f"scores has {shown(unknown[0])}: the aspects of the project are {known}", "scores")
    text = values.get("text")
    levels = {aspect: _level(value, aspect, rules.aspects[aspect]) for aspect, value in scores.items()}
    segment = GivenSegment(rater, response, index, Range(start, end), text if isinstance(text, str) else None, levels)
    notes = unread(values, {*READ, *rules.aspects})
    return TaskRow(messages=[], responses=(), external_id=task, segment=segment, refers=True, notes=notes)


def _number(value: Any, name: str) -> int:
    number = whole_of_cell(value)
    if type(number) is int and number >= 0:
        return number
    raise BadRow(f"{name} is {shown(value)}: it must be a whole number from 0", name)


def _level(value: Any, aspect: str, levels: int) -> int | None:
    if value in (None, ""):
        return None
    score = whole_of_cell(value)
    if type(score) is not int or not 0 <= score < levels:
        raise BadRow(f"{aspect} is {shown(value)}: its levels are 0 to {levels - 1}, or null", aspect)
    return score


class _DoesNotFit(Exception):
    """What is said of segments does not fit the stored response; the message says why."""


def with_responses(project: Project, placed: Sequence[Placed]) -> tuple[list[Placed], list[Rejected]]:
    """Turns what rows say of segments into ratings or labels of the responses that they name.

    A response that nobody has cut yet is given the row's segments. Returns the rows, and those that do not fit.
    """
    if not any(one.row.sheet for one in placed):
        return list(placed), []
    # As for ratings, and before any response is changed: a redaction takes the locks in this order, too.
    rated = {one.task for one in placed if one.row.has_ratings()}
    list(Task.objects.filter(pk__in=rated).select_for_update().order_by("pk").values_list("pk"))
    wanted = [pk for one in placed if one.row.sheet for pk in one.responses]
    stored = Response.objects.only("position", "external_id", "text", "segments").in_bulk(wanted)
    fit, refused = [], []
    for one in placed:
        if one.row.sheet is None:
            fit.append(one)
            continue
        try:
            fit.append(_filled(project, one, one.row.sheet, [stored[pk] for pk in one.responses]))
        except (_DoesNotFit, NotAPartition) as wrong:
            refused.append(Rejected(one.row.line, str(wrong)))
    return fit, refused


def _filled(project: Project, placed: Placed, sheet: SegmentSheet, responses: Sequence[Response]) -> Placed:
    by_name = {response.external_id or str(response.position + 1): response for response in responses}
    said: dict[int, SegmentLabel] = {}
    for name, given in sheet.responses.items():
        if (response := by_name.get(name)) is None:
            known = ", ".join(map(shown, by_name))
            raise _DoesNotFit(f"the task has no response {shown(name)}: its responses are {known}")
        _check_texts(response, name, given)
        cut = () if list(given.cut) == list(ranges(response.segments)) or response.segments is None else given.cut
        if cut and sheet.rater and not project.allow_recut:
            what = f"the segments of the response {shown(name)} differ from those that are stored"
            raise _DoesNotFit(f"{what}, and the project does not let annotators change them")
        said[response.position] = SegmentLabel(sheet.aspects, given.scores, cut)
    # A first cut may leave the task with too many segments in all.
    first = {by_name[name].pk: len(one.cut) for name, one in sheet.responses.items() if by_name[name].segments is None}
    count = sum(first.get(response.pk, len(response.segments or ())) for response in responses)
    if first and count > MOST_SEGMENTS:
        raise _DoesNotFit(f"the task would have {count:,} segments, and at most {MOST_SEGMENTS:,} are accepted")
    for name, given in sheet.responses.items():
        response = by_name[name]
        if response.segments is not None:
            continue
        # Whoever opens the task cuts its responses, without the task's lock.
        if not response.store_first_segments([list(segment) for segment in given.cut]):
            raise _DoesNotFit("somebody has just opened the task for the first time: import the row again")
    row = placed.row
    if sheet.rater:
        annotation = GivenAnnotation(sheet.rater, {position: {} for position in said}, segments=said)
        return replace(placed, row=replace(row, annotations=(annotation,)))
    labels = tuple(ResponseRow("", segment_label=said.get(position)) for position in range(len(responses)))
    return replace(placed, row=replace(row, responses=labels))


def _check_texts(response: Response, name: str, given: GivenSegments) -> None:
    segments = partition(response.text, given.cut)
    for number, (segment, text) in enumerate(zip(segments, given.texts, strict=True), start=1):
        stored = segment.of(response.text)
        if text not in (None, stored):
            what = f"segment {number} of the response {shown(name)} is {shown(text)}"
            raise _DoesNotFit(f"{what}, and the stored text has {shown(stored)} there")
