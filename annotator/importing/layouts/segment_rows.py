"""Reads our own export of segments: a row for each segment, with the scores of one rater or those of a label."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any

from annotator.importing.field_checks import BadRow, from_json_cells, identifier, shown, whole_of_cell
from annotator.importing.layouts.ratings import unread
from annotator.importing.rows import FlatRow, GivenSegments, Rejected, Rules, SegmentSheet, TaskRow
from annotator.importing.sources import RawRow
from annotator.segmenting import Range

LAYOUT = "segments"
MOST_BYTES = 32 << 20
"""Bytes of the rows of one rater and task that are kept in memory."""
_NUMBERS = ("segment", "start", "end")
READ = {"task", "response", "annotator", "text", "scores", *_NUMBERS}


@dataclass(frozen=True)
class SegmentRow:
    """One segment of a response, and its scores by aspect. `rater` is empty for a label."""

    line: int
    size: int
    task: str
    rater: str
    response: str
    index: int
    segment: Range
    text: str | None
    scores: Mapping[str, int | None]
    notes: tuple[str, ...] = ()

    @property
    def sheet(self) -> tuple[str, str]:
        return self.task, self.rater


def is_segment(values: Mapping[str, Any]) -> bool:
    return values.keys() >= {"task", "response", *_NUMBERS}


def segment_row(raw: RawRow, values: dict[str, Any], rules: Rules) -> SegmentRow:
    """Reads a row of the layout *segments*, in which scores count from 0. Raises BadRow."""
    if not rules.aspects:
        raise BadRow("this project rates no segments: its rubric has no attribute of segments", "segment")
    if raw.from_csv:
        values = from_json_cells(values, ("scores",))
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
    return SegmentRow(
        line=raw.line,
        size=raw.size,
        task=task,
        rater=rater,
        response=response,
        index=index,
        segment=Range(start, end),
        text=text if isinstance(text, str) else None,
        scores={aspect: _level(value, aspect, rules.aspects[aspect]) for aspect, value in scores.items()},
        notes=unread(values, {*READ, *rules.aspects}),
    )


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


def with_sheets(
    rows: Iterator[TaskRow | FlatRow | SegmentRow | Rejected], rules: Rules
) -> Iterator[TaskRow | FlatRow | Rejected]:
    """Joins rows of one rater and task that follow each other, and passes all others on."""
    waiting: list[SegmentRow] = []
    size = 0
    for row in rows:
        if waiting and not (isinstance(row, SegmentRow) and row.sheet == waiting[0].sheet and size < MOST_BYTES):
            yield _sheet(waiting, rules)
            waiting, size = [], 0
        if isinstance(row, SegmentRow):
            waiting.append(row)
            size += row.size
        else:
            yield row
        del row
    if waiting:
        yield _sheet(waiting, rules)


def _sheet(rows: Sequence[SegmentRow], rules: Rules) -> TaskRow | Rejected:
    first = rows[0]
    aspects = tuple(aspect for aspect in rules.aspects if any(aspect in row.scores for row in rows))
    if not aspects:
        known = ", ".join(rules.aspects)
        return Rejected(first.line, f"the row has no scores: the aspects of the project are {known}", "scores")
    responses: dict[str, GivenSegments] = {}
    for name, of_response in groupby(rows, key=attrgetter("response")):
        segments = list(of_response)
        wrong = next((row for number, row in enumerate(segments) if row.index != number), None)
        if wrong or name in responses:
            what = f"segment {(wrong or segments[0]).index} of the response {shown(name)} is out of order"
            why = "rows of one task, annotator and response must follow each other, from segment 0 on"
            return Rejected((wrong or segments[0]).line, f"{what}: {why}", "segment")
        responses[name] = GivenSegments(
            cut=tuple(row.segment for row in segments),
            texts=tuple(row.text for row in segments),
            scores=tuple(tuple(row.scores.get(aspect) for aspect in aspects) for row in segments),
        )
    return TaskRow(
        line=first.line,
        messages=[],
        responses=(),
        external_id=first.task,
        sheet=SegmentSheet(first.rater, aspects, responses),
        refers=True,
        layout=LAYOUT,
        notes=tuple(dict.fromkeys(note for row in rows for note in row.notes)),
        size=sum(row.size for row in rows),
    )
