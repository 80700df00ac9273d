"""Turns raw rows into checked rows: the first layout that recognises a row by its fields reads it."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from annotator.importing.companions import parted, refuse_media, shown_with
from annotator.importing.field_checks import BadRow, check_responses, check_segments, shown
from annotator.importing.layouts import (
    argilla,
    comparisons,
    completions,
    helpsteer2,
    helpsteer3,
    label_studio,
    message_trees,
    own_tasks,
    pairs,
    ratings,
    segment_rows,
    spans,
    steps,
)
from annotator.importing.layouts.gathering import with_ratings_gathered
from annotator.importing.layouts.segment_rows import SegmentRow
from annotator.importing.notes import same_responses, told
from annotator.importing.prompts import messages_from_prompt
from annotator.importing.rows import FlatRow, Rejected, Rules, TaskRow
from annotator.importing.sources import RawRow

COLUMNS_NAMED = 20
"""Columns that a refusal names."""
Recognises = Callable[[Mapping[str, Any]], bool]
Read = TaskRow | FlatRow | SegmentRow
Reads = Callable[[RawRow, dict[str, Any], Rules], Read | list[TaskRow]]
LAYOUTS: tuple[tuple[Recognises, Reads], ...] = (
    (label_studio.is_label_studio, label_studio.label_studio_row),
    (argilla.is_argilla, argilla.argilla_row),
    (ratings.is_potato, ratings.potato_row),
    (ratings.is_score, ratings.score_row),
    (ratings.is_annotation, ratings.annotation_row),
    (segment_rows.is_segment, segment_rows.segment_row),
    (message_trees.is_tree, message_trees.tree_rows),
    (comparisons.is_arena, comparisons.arena_row),
    (steps.is_stepwise, steps.stepwise_row),
    (steps.is_first_error, steps.first_error_row),
    (steps.is_prm800k, steps.prm800k_row),
    (completions.has_completions, completions.completions_row),
    (helpsteer3.is_helpsteer3, helpsteer3.helpsteer3_row),
    (own_tasks.is_task, own_tasks.task_row),
    (helpsteer2.is_preference, helpsteer2.preference_row),
    (pairs.is_pair, pairs.pair_row),
    (comparisons.is_comparison, comparisons.comparison_row),
    (spans.has_spans, spans.spans_row),
    (own_tasks.is_conversation, own_tasks.conversation_row),
    (own_tasks.is_completion, own_tasks.completion_row),
    (helpsteer2.is_labels, helpsteer2.labels_row),
    (helpsteer2.is_flat, helpsteer2.flat_row),
)
"""Each recognises rows by all the fields that it needs and that those above it do not have."""


def read_tasks(rows: Iterable[RawRow], rules: Rules) -> Iterator[TaskRow | Rejected]:
    """Checks each row against the layout that its fields indicate, and joins rows of one task.

    Rows that hold nothing but ratings of tasks that are there already come last, person by person.

    `rules` are the project's.
    """
    parsed = segment_rows.with_sheets(_all_parsed(rows, rules), rules)
    return with_ratings_gathered(_with_pairs(parsed), rules)


def _all_parsed(rows: Iterable[RawRow], rules: Rules) -> Iterator[Read | Rejected]:
    for raw in rows:
        parsed = _parsed(raw, rules)
        # A large row would stay in memory while the next one is read.
        del raw
        yield from parsed
        del parsed


def _with_pairs(rows: Iterator[TaskRow | FlatRow | Rejected]) -> Iterator[TaskRow | Rejected]:
    waiting: FlatRow | None = None
    for row in rows:
        if isinstance(row, FlatRow) and waiting and _same_prompt(waiting, row):
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


def _parsed(raw: RawRow, rules: Rules) -> Sequence[Read | Rejected]:
    if raw.values is None:
        return [Rejected(raw.line, raw.error, raw.field)]
    try:
        refuse_media(raw.values)
        values, companions = parted(raw.values, from_csv=raw.from_csv)
        read = _reads(values)(raw, values, rules)
        rows = read if isinstance(read, list) else [read]
        return [_within_limits(row if isinstance(row, SegmentRow) else told(raw, row, companions)) for row in rows]
    except BadRow as bad:
        return [Rejected(raw.line, str(bad), bad.field, layout=_layout_of(raw.values))]
    except RecursionError:
        # Strangers choose the nesting of a row, and one such row must not end the import.
        return [Rejected(raw.line, "the row is nested too deeply")]


def _within_limits(row: Read) -> Read:
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
    return _unknown


_TOOLS: Mapping[Reads, str] = {
    label_studio.label_studio_row: "label_studio",
    argilla.argilla_row: "argilla",
    ratings.potato_row: ratings.POTATO_LAYOUT,
    ratings.score_row: ratings.SCORES_LAYOUT,
    ratings.annotation_row: ratings.ANNOTATIONS_LAYOUT,
}


def _layout_of(values: Mapping[str, Any]) -> str:
    """Returns the layout of a row that a tool has written, whether the row fits or not; else an empty text."""
    return _TOOLS.get(_reads(values), "")


def _unknown(_raw: RawRow, values: dict[str, Any], _rules: Rules) -> FlatRow:
    """Refuses a row that no layout recognises, and names its columns. Raises BadRow."""
    names = [shown(name)[1:-1] for name in list(values)[:COLUMNS_NAMED]]
    there = ", ".join([*names, *(["..."] if len(values) > COLUMNS_NAMED else [])]) or "no columns"
    what = f"the row has {there}. A task needs a prompt and a response: a mapping says which columns hold them"
    missing = [name for name in ("prompt", "response") if name not in values]
    if len(missing) == 1:
        raise BadRow(f"the field {missing[0]} is missing: {what}", missing[0])
    raise BadRow(f"the columns of the row are not known: {what}", next(iter(missing), ""))


def _same_prompt(first: FlatRow, second: FlatRow) -> bool:
    return first.prompt == second.prompt and first.companions == second.companions


def _paired(*rows: FlatRow) -> TaskRow:
    return TaskRow(
        line=rows[0].line,
        messages=shown_with(messages_from_prompt(rows[0].prompt), rows[0].companions),
        responses=tuple(row.response for row in rows),
        language=rows[0].language,
        unknown_language=rows[0].unknown_language,
        layout="helpsteer2",
        size=sum(row.size for row in rows),
        shown=rows[0].companions.columns,
        kept=tuple(kept for row in rows for kept in row.kept),
        notes=(*(note for row in rows for note in row.notes), *same_responses([row.response.text for row in rows])),
    )
