"""Turns raw rows into checked rows: the first layout that recognises a row by its fields reads it."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from annotator.importing.field_checks import BadRow, check_responses, check_segments
from annotator.importing.layouts import (
    argilla,
    comparisons,
    completions,
    helpsteer2,
    helpsteer3,
    label_studio,
    own_tasks,
    pairs,
    ratings,
    segment_rows,
    spans,
    steps,
)
from annotator.importing.layouts.segment_rows import SegmentRow
from annotator.importing.prompts import messages_from_prompt
from annotator.importing.rows import FlatRow, Rejected, Rules, TaskRow
from annotator.importing.sources import RawRow

Recognises = Callable[[Mapping[str, Any]], bool]
Reads = Callable[[RawRow, dict[str, Any], Rules], TaskRow | FlatRow | SegmentRow]
LAYOUTS: tuple[tuple[Recognises, Reads], ...] = (
    (label_studio.is_label_studio, label_studio.label_studio_row),
    (argilla.is_argilla, argilla.argilla_row),
    (ratings.is_potato, ratings.potato_row),
    (ratings.is_score, ratings.score_row),
    (segment_rows.is_segment, segment_rows.segment_row),
    (comparisons.is_arena, comparisons.arena_row),
    (steps.is_stepwise, steps.stepwise_row),
    (steps.is_prm800k, steps.prm800k_row),
    (completions.has_completions, completions.completions_row),
    (helpsteer3.is_helpsteer3, helpsteer3.helpsteer3_row),
    (own_tasks.is_task, own_tasks.task_row),
    (helpsteer2.is_preference, helpsteer2.preference_row),
    (pairs.is_pair, pairs.pair_row),
    (comparisons.is_comparison, comparisons.comparison_row),
    (spans.has_spans, spans.spans_row),
    (own_tasks.is_conversation, own_tasks.conversation_row),
    (helpsteer2.is_flat, helpsteer2.flat_row),
)
"""Each recognises rows by fields that those above it do not have; the last one takes what no other recognises."""


def read_tasks(rows: Iterable[RawRow], rules: Rules) -> Iterator[TaskRow | Rejected]:
    """Checks each row against the layout that its fields indicate, and joins rows of one task that follow each other.

    `rules` are the project's.
    """
    parsed = segment_rows.with_sheets(_all_parsed(rows, rules), rules)
    return _with_scores_merged(_with_pairs(parsed), rules)


def _all_parsed(rows: Iterable[RawRow], rules: Rules) -> Iterator[TaskRow | FlatRow | SegmentRow | Rejected]:
    for raw in rows:
        parsed = _parsed(raw, rules)
        # A large row would stay in memory while the next one is read.
        del raw
        yield parsed
        del parsed


def _with_pairs(rows: Iterator[TaskRow | FlatRow | Rejected]) -> Iterator[TaskRow | Rejected]:
    waiting: FlatRow | None = None
    for row in rows:
        if isinstance(row, FlatRow) and waiting and waiting.prompt == row.prompt:
            yield _paired(waiting, row)
            waiting = None
        elif isinstance(row, FlatRow):
            if waiting:
                yield _paired(waiting)
            waiting = row
        else:
            yield row
        del row
    if waiting:
        yield _paired(waiting)


def _with_scores_merged(rows: Iterator[TaskRow | Rejected], rules: Rules) -> Iterator[TaskRow | Rejected]:
    waiting: TaskRow | None = None
    for row in rows:
        if not isinstance(row, TaskRow) or row.layout != ratings.SCORES_LAYOUT:
            yield row
        elif waiting and (both := ratings.merged(waiting, row)):
            waiting = both
        else:
            if waiting:
                yield _complete(waiting, rules)
            waiting = row
        del row
    if waiting:
        yield _complete(waiting, rules)


def _complete(row: TaskRow, rules: Rules) -> TaskRow | Rejected:
    try:
        ratings.require_complete(row, rules)
    except BadRow as bad:
        return Rejected(row.line, str(bad), bad.field)
    return row


def _parsed(raw: RawRow, rules: Rules) -> TaskRow | FlatRow | SegmentRow | Rejected:
    if raw.values is None:
        return Rejected(raw.line, raw.error, raw.field)
    try:
        return _within_limits(_reads(raw.values)(raw, raw.values, rules))
    except BadRow as bad:
        return Rejected(raw.line, str(bad), bad.field)
    except RecursionError:
        # Strangers choose the nesting of a row, and one such row must not end the import.
        return Rejected(raw.line, "the row is nested too deeply")


def _within_limits(row: TaskRow | FlatRow | SegmentRow) -> TaskRow | FlatRow | SegmentRow:
    """Returns the row. Raises BadRow if it is a task of more responses or segments than the rating page carries."""
    if isinstance(row, TaskRow):
        check_responses(len(row.responses))
        if any(response.segments for response in row.responses):
            check_segments(sum(max(1, len(response.segments)) for response in row.responses))
    return row


def _reads(values: Mapping[str, Any]) -> Reads:
    for recognises, read in LAYOUTS:
        if recognises(values):
            return read
    raise AssertionError("the last layout recognises every row")


def _paired(*rows: FlatRow) -> TaskRow:
    return TaskRow(
        line=rows[0].line,
        messages=messages_from_prompt(rows[0].prompt),
        responses=tuple(row.response for row in rows),
        language=rows[0].language,
        layout="helpsteer2",
        size=sum(row.size for row in rows),
    )
