"""Gathers the ratings of tasks that are there already, which tables spread over many rows, person by person.

They come behind all other rows of the file, those of one task together. So the order of the rows decides nothing. They
wait in a file that SQLite deletes by itself: a table of millions of scores takes no memory.
"""

import json
import sqlite3
from collections.abc import Iterator
from datetime import datetime
from functools import reduce
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from annotator.importing.field_checks import shown
from annotator.importing.layouts.ratings import ANNOTATIONS_LAYOUT, POTATO_LAYOUT, SCORES_LAYOUT
from annotator.importing.rows import GivenAnnotation, Rejected, Rules, TaskRow
from annotator.limits import MOST_ANNOTATORS

LAYOUTS = {POTATO_LAYOUT, SCORES_LAYOUT, ANNOTATIONS_LAYOUT}
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


class _Incomplete(Exception):
    """A person's scores of a response lack attributes; the message names them."""


def with_ratings_gathered(rows: Iterator[TaskRow | Rejected], rules: Rules) -> Iterator[TaskRow | Rejected]:
    """Passes rows on, and then yields one row for each person and task of those that hold nothing but a rating."""
    waiting: sqlite3.Connection | None = None
    for row in rows:
        if isinstance(row, TaskRow) and row.layout in LAYOUTS:
            waiting = waiting or _opened()
            _put(waiting, row)
        else:
            yield row
        del row
    if waiting:
        yield from _gathered(waiting, rules)
        waiting.close()


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
    of_task = [said.preference, said.justification, time, said.active_seconds]
    content, notes = json.dumps([list(said.ratings.items()), *of_task]), json.dumps(row.notes)
    row_of_table = (row.external_id, said.rater, row.line, row.size, row.layout, content, notes)
    waiting.execute("INSERT INTO given VALUES (?, ?, ?, ?, ?, ?, ?)", row_of_table)


def _gathered(waiting: sqlite3.Connection, rules: Rules) -> Iterator[TaskRow | Rejected]:
    stored = map(_Stored._make, waiting.execute(_BY_TASK_AND_RATER))
    for _task_and_rater, rows in groupby(stored, key=itemgetter(0, 1)):
        yield _of_person(rows, rules)


def _of_person(rows: Iterator[_Stored], rules: Rules) -> TaskRow | Rejected:
    first = next(rows)
    task = first.task
    if first.people > MOST_ANNOTATORS:
        why = f"the task {shown(task)} has {first.people:,} raters, and at most {MOST_ANNOTATORS} are accepted"
        return Rejected(first.line, why, layout=first.layout)
    try:
        whole = reduce(_joined, map(_read, rows), _read(first))
        _require_complete(task, whole, rules)
    except _Contradiction as why:
        return Rejected(first.line, f"{why}: none of this person's ratings of the task {shown(task)} is added")
    except _Incomplete as incomplete:
        return Rejected(first.line, str(incomplete), "attribute")
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
    ratings, preference, justification, time, seconds = json.loads(row.said)
    submitted = datetime.fromisoformat(time) if time else None
    return GivenAnnotation(row.rater, dict(ratings), preference, justification, {}, (), submitted, seconds)


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
    )


def _require_complete(task: str, said: GivenAnnotation, rules: Rules) -> None:
    for position, scores in sorted(said.ratings.items()):
        if missing := [attribute for attribute in rules.attributes if attribute not in scores]:
            what = f"the scores of response {position + 1} of the task {shown(task)} lack {', '.join(missing)}"
            raise _Incomplete(f"{what}: rate every attribute")
