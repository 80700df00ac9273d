"""Joins rows: two of one prompt are one task, and those that rate a task that is there are one person's work.

Ratings of tasks that are there already are spread over many rows of a table. They come behind all other rows of the
file, those of one task together, so the order of the rows decides nothing. They wait in a file that SQLite deletes by
itself: a table of millions of scores takes no memory.
"""

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from functools import reduce
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from annotator.infrastructure.limits import MOST_ANNOTATORS
from annotator.stages.importing.field_checks import shown
from annotator.stages.importing.layouts.ratings import ANNOTATIONS_LAYOUT, POTATO_LAYOUT, SCORES_LAYOUT
from annotator.stages.importing.results import same_responses
from annotator.stages.importing.task_rows import (
    GivenAnnotation,
    GivenSegment,
    GivenSegments,
    ImportRules,
    Rejected,
    SegmentSheet,
    TaskRow,
)

MOST_BYTES = 32 << 20
"""Bytes of the rows of segments of one rater and task that are kept in memory."""


class Groups:
    """The rows that wait for others. Each row goes in by `take`; what waits at the end of the file comes by `rest`."""

    def __init__(self, rules: ImportRules) -> None:
        self._rules = rules
        self._sheet: list[tuple[TaskRow, GivenSegment]] = []
        self._sheet_bytes = 0
        self._half: TaskRow | None = None
        self._ratings: sqlite3.Connection | None = None

    def take(self, row: TaskRow | Rejected) -> list[TaskRow | Rejected]:
        """Takes a row; returns those that wait for no other one."""
        ready: list[TaskRow | Rejected] = []
        segment = row.segment if isinstance(row, TaskRow) else None
        if self._sheet and not (isinstance(row, TaskRow) and segment and self._has_room_for(row, segment)):
            ready.append(self._joined_sheet())
        if isinstance(row, Rejected):
            ready.append(row)
        elif segment:
            self._sheet.append((row, segment))
            self._sheet_bytes += row.size
        elif row.pairs_up:
            half, self._half = self._half, row
            if half and (half.messages, half.shown) == (row.messages, row.shown):
                responses = half.responses + row.responses
                same = same_responses([response.text for response in responses])
                paired = replace(
                    half,
                    responses=responses,
                    size=half.size + row.size,
                    kept=half.kept + row.kept,
                    notes=half.notes + row.notes + same,
                )
                self._half = None
                ready.append(paired)
            elif half:
                ready.append(half)
        elif row.layout in (POTATO_LAYOUT, SCORES_LAYOUT, ANNOTATIONS_LAYOUT):
            self._ratings = self._ratings or _opened()
            _put(self._ratings, row)
        else:
            ready.append(row)
        return ready

    def rest(self) -> Iterator[TaskRow | Rejected]:
        """Yields what waits at the end of the file."""
        if self._sheet:
            yield self._joined_sheet()
        if self._half:
            yield self._half
        if self._ratings:
            stored = map(_Stored._make, self._ratings.execute(_BY_TASK_AND_RATER))
            for _task_and_rater, rows in groupby(stored, key=itemgetter(0, 1)):
                yield _of_person(rows, self._rules)
            self._ratings.close()

    def _has_room_for(self, row: TaskRow, segment: GivenSegment) -> bool:
        """Returns whether the row is of the same rater and task as those that wait, which are not too many."""
        first, of_first = self._sheet[0]
        is_same = (first.external_id, of_first.rater) == (row.external_id, segment.rater)
        return is_same and self._sheet_bytes < MOST_BYTES

    def _joined_sheet(self) -> TaskRow | Rejected:
        """Returns the rows of segments that wait as one row, and waits for those of another sheet."""
        rows, self._sheet, self._sheet_bytes = self._sheet, [], 0
        first, of_first = rows[0]
        aspects = tuple(aspect for aspect in self._rules.aspects if any(aspect in one.scores for _, one in rows))
        if not aspects:
            known = ", ".join(self._rules.aspects)
            return Rejected(first.line, f"the row has no scores: the aspects of the project are {known}", "scores")
        responses: dict[str, GivenSegments] = {}
        for name, of_response in groupby(rows, key=lambda one: one[1].response):
            segments = list(of_response)
            wrong = next((one for number, one in enumerate(segments) if one[1].index != number), None)
            if wrong or name in responses:
                row, segment = wrong or segments[0]
                what = f"segment {segment.index} of the response {shown(name)} is out of order"
                why = "rows of one task, annotator and response must follow each other, from segment 0 on"
                return Rejected(row.line, f"{what}: {why}", "segment")
            responses[name] = GivenSegments(
                cut=tuple(one.range for _, one in segments),
                texts=tuple(one.text for _, one in segments),
                scores=tuple(tuple(one.scores.get(aspect) for aspect in aspects) for _, one in segments),
            )
        return replace(
            first,
            segment=None,
            sheet=SegmentSheet(of_first.rater, aspects, responses),
            notes=tuple(dict.fromkeys(note for row, _ in rows for note in row.notes)),
            size=sum(row.size for row, _ in rows),
        )


# Ratings of tasks that are there already -------------------------------------------------------------------


_TABLE = "CREATE TABLE given (task TEXT, rater TEXT, line INTEGER, size INTEGER, layout TEXT, said TEXT, notes TEXT)"
_BY_TASK_AND_RATER = """
SELECT given.task, rater, line, size, layout, said, notes, people FROM given
JOIN (SELECT task, min(rowid) AS first, count(DISTINCT rater) AS people FROM given GROUP BY task) USING (task)
ORDER BY first, rater, given.rowid
"""


class _Stored(NamedTuple):
    """A row that waits; `people` is the number of raters of its task."""

    task: str
    rater: str
    line: int
    size: int
    layout: str
    said: str
    notes: str
    people: int


class _Contradiction(Exception):
    """Two rows of one person say different things; the message says of what."""


def _opened() -> sqlite3.Connection:
    # The empty name stands for a temporary file. Whoever stops reading halfway may close it in another thread.
    database = sqlite3.connect("", isolation_level=None, check_same_thread=False)
    database.execute("PRAGMA journal_mode = OFF")
    database.execute("PRAGMA synchronous = OFF")
    database.execute(_TABLE)
    return database


def _put(waiting: sqlite3.Connection, row: TaskRow) -> None:
    (said,) = row.annotations
    time = said.submitted_at.isoformat() if said.submitted_at else None
    of_task = [said.preference, said.justification, time, said.active_seconds, list(said.evidence.items())]
    content, notes = json.dumps([list(said.ratings.items()), *of_task]), json.dumps(row.notes)
    row_of_table = (row.external_id, said.rater, row.line, row.size, row.layout, content, notes)
    waiting.execute("INSERT INTO given VALUES (?, ?, ?, ?, ?, ?, ?)", row_of_table)


def _of_person(rows: Iterator[_Stored], rules: ImportRules) -> TaskRow | Rejected:
    first = next(rows)
    task = first.task
    if first.people > MOST_ANNOTATORS:
        why = f"the task {shown(task)} has {first.people:,} raters, and at most {MOST_ANNOTATORS} are accepted"
        return Rejected(first.line, why, layout=first.layout)
    try:
        whole = reduce(_joined, map(_read, rows), _read(first))
    except _Contradiction as why:
        return Rejected(first.line, f"{why}: none of this person's ratings of the task {shown(task)} is added")
    for position, scores in sorted(whole.ratings.items()):
        if missing := [attribute for attribute in rules.attributes if attribute not in scores]:
            what = f"the scores of response {position + 1} of the task {shown(task)} lack {', '.join(missing)}"
            return Rejected(first.line, f"{what}: rate every attribute", "attribute")
    return TaskRow(
        line=first.line,
        messages=[],
        responses=(),
        external_id=task,
        annotations=(whole,),
        refers=True,
        layout=first.layout,
        size=first.size,
        notes=tuple(json.loads(first.notes)),
    )


def _read(row: _Stored) -> GivenAnnotation:
    ratings, preference, justification, time, seconds, quoted = json.loads(row.said)
    submitted = datetime.fromisoformat(time) if time else None
    evidence = {position: tuple(map(tuple, given)) for position, given in quoted}
    return GivenAnnotation(row.rater, dict(ratings), preference, justification, {}, (), submitted, seconds, evidence)


def _joined(one: GivenAnnotation, other: GivenAnnotation) -> GivenAnnotation:
    """Returns what two rows of one person say of one task. Raises _Contradiction."""
    ratings = {position: dict(scores) for position, scores in one.ratings.items()}
    for position, scores in other.ratings.items():
        known = ratings.setdefault(position, {})
        for attribute, score in scores.items():
            if known.setdefault(attribute, score) != score:
                what = f"two rows give response {position + 1} different scores of {attribute}"
                raise _Contradiction(f"{what}, {known[attribute]} and {score}")
    if None not in (one.preference, other.preference) and one.preference != other.preference:
        raise _Contradiction(f"two rows give different preferences, {one.preference} and {other.preference}")
    for position in one.evidence.keys() & other.evidence.keys():
        if one.evidence[position] != other.evidence[position]:
            raise _Contradiction(f"two rows give different evidence of response {position + 1}")
    times = [time for time in (one.submitted_at, other.submitted_at) if time]
    return GivenAnnotation(
        one.rater,
        ratings,
        one.preference if one.preference is not None else other.preference,
        one.justification or other.justification,
        {},
        (),
        max(times, default=None),
        max((given for given in (one.active_seconds, other.active_seconds) if given is not None), default=None),
        {**one.evidence, **other.evidence},
    )
