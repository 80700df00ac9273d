"""Turns raw rows into checked rows: the first layout that recognises a row by its fields reads it."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

from annotator.stages.importing.conversations import parted, refuse_media
from annotator.stages.importing.field_checks import BadRow, check_responses, check_segments, from_json_cells, shown
from annotator.stages.importing.layouts import (
    completions,
    helpsteer,
    own_tasks,
    pairs,
    ratings,
    segment_rows,
    steps,
    tools,
)
from annotator.stages.importing.layouts.grouping import Groups
from annotator.stages.importing.mapped_rows import mapped_rows
from annotator.stages.importing.mappings import ColumnMapping
from annotator.stages.importing.results import told
from annotator.stages.importing.task_rows import ImportRules, RawRow, Rejected, TaskRow

COLUMNS_NAMED = 20
"""Columns that a refusal names."""
Values = dict[str, Any]
Cells = Callable[[Values, ImportRules], Values]


@dataclass(frozen=True)
class ImportLayout:
    """A layout by its name, how its rows are recognised, and what reads one.

    `cells` are the columns that hold JSON as text in a table, or what reads the cells of a table. A row that `of_tool`
    has written is known for one even where it does not fit.
    """

    name: str
    recognises: Callable[[Mapping[str, Any]], bool]
    read: Callable[[Values, ImportRules], TaskRow | list[TaskRow]]
    cells: Sequence[str] | Cells = ()
    of_tool: bool = False


def _has(*names: str) -> Callable[[Mapping[str, Any]], bool]:
    fields = {*names}
    return lambda values: values.keys() >= fields


LAYOUTS = (
    ImportLayout("label_studio", tools.is_label_studio, tools.label_studio_row, of_tool=True),
    ImportLayout("argilla", lambda values: isinstance(values.get("fields"), dict), tools.argilla_row, of_tool=True),
    ImportLayout(ratings.POTATO_LAYOUT, ratings.is_potato, ratings.potato_row, ("label_annotations",), of_tool=True),
    ImportLayout(ratings.SCORES_LAYOUT, ratings.is_score, ratings.score_row, of_tool=True),
    ImportLayout(ratings.ANNOTATIONS_LAYOUT, ratings.is_annotation, ratings.annotation_row, ("scores",), of_tool=True),
    ImportLayout(
        "segments", _has("task", "response", "segment", "start", "end"), segment_rows.segment_row, ("scores",)
    ),
    ImportLayout("trees", completions.is_tree, completions.tree_rows),
    ImportLayout("comparisons", _has(*pairs.CONVERSATIONS), pairs.arena_row, pairs.CONVERSATIONS),
    ImportLayout("stepwise", steps.is_stepwise, steps.stepwise_row, steps.STEP_CELLS),
    ImportLayout("stepwise", steps.is_first_error, steps.first_error_row, steps.STEP_CELLS),
    ImportLayout("stepwise", steps.is_prm800k, steps.prm800k_row),
    ImportLayout("completions", completions.has_completions, completions.completions_row, completions.CELLS),
    ImportLayout("helpsteer3", helpsteer.is_helpsteer3, helpsteer.helpsteer3_row, helpsteer.helpsteer3_cells),
    ImportLayout("tasks", _has("responses"), own_tasks.task_row, own_tasks.TASK_CELLS),
    ImportLayout("preference", _has("preference_strength"), helpsteer.preference_row, helpsteer.preference_cells),
    ImportLayout("pairs", _has("chosen"), pairs.pair_row, pairs.pair_cells),
    ImportLayout("pairs", _has("rejected"), pairs.pair_row, pairs.pair_cells),
    ImportLayout("comparisons", pairs.is_comparison, pairs.comparison_row, pairs.PROMPTS),
    ImportLayout("spans", _has("spans", "response"), steps.spans_row, ("spans", "alternatives")),
    ImportLayout(
        "conversations",
        lambda values: any(name in values for name in own_tasks.CONVERSATIONS),
        own_tasks.conversation_row,
        own_tasks.CONVERSATIONS,
    ),
    ImportLayout("completions", _has("prompt", "completion"), own_tasks.completion_row, own_tasks.COMPLETION_CELLS),
    ImportLayout(
        "helpsteer2", _has("task", "response", "prompt", "text", "made_at"), helpsteer.labels_row, helpsteer.flat_cells
    ),
    ImportLayout("helpsteer2", _has("prompt", "response"), helpsteer.flat_row, helpsteer.flat_cells),
)
"""Each recognises rows by all the fields that it needs and that those above it do not have."""
_MAPPED = ImportLayout("tasks", _has("responses"), partial(own_tasks.task_row, is_mapped=True))


def read_tasks(
    rows: Iterable[RawRow], rules: ImportRules, mapping: ColumnMapping | None = None
) -> Iterator[TaskRow | Rejected]:
    """Maps each row, checks it against the layout that its fields indicate, and joins rows of one task.

    Rows that hold nothing but ratings of tasks that are there already come last, person by person. `rules` are the
    project's.

    Raises:
        MissingColumn: None of the first rows has one of the mapping's columns.
    """
    if mapping:
        rules = mapping.added_to(rules)
        rows = mapped_rows(iter(rows), mapping) if mapping.responses else rows
    groups = Groups(rules)
    # Iterators that let go of a row before they ask for the next one: a large one would stay in memory otherwise.
    parsed = chain.from_iterable(map(partial(_parsed, rules=rules), rows))
    return chain(chain.from_iterable(map(groups.take, parsed)), groups.rest())


def _parsed(raw: RawRow, rules: ImportRules) -> Sequence[TaskRow | Rejected]:
    if raw.values is None:
        return [Rejected(raw.line, raw.error, raw.field)]
    try:
        refuse_media(raw.values)
        values, companions = parted(raw.values, from_csv=raw.from_csv)
        layout = _MAPPED if raw.is_mapped else _layout_of(values)
        if layout is None:
            raise _unknown(values)
        if raw.from_csv and layout.cells:
            cells = layout.cells
            values = cells(values, rules) if callable(cells) else from_json_cells(values, cells)
        read = layout.read(values, rules)
        return [
            _within_limits(told(row, raw, layout.name, companions))
            for row in (read if isinstance(read, list) else [read])
        ]
    except BadRow as bad:
        layout = _layout_of(raw.values)
        return [Rejected(raw.line, str(bad), bad.field, layout=layout.name if layout and layout.of_tool else "")]
    except RecursionError:
        # Strangers choose the nesting of a row, and one such row must not end the import.
        return [Rejected(raw.line, "the row is nested too deeply")]


def _layout_of(values: Mapping[str, Any]) -> ImportLayout | None:
    return next((layout for layout in LAYOUTS if layout.recognises(values)), None)


def _within_limits(row: TaskRow) -> TaskRow:
    """Returns the row. Raises BadRow if it has more responses or segments than the rating page carries."""
    check_responses(len(row.responses))
    if any(response.segments for response in row.responses):
        check_segments(sum(max(1, len(response.segments)) for response in row.responses))
    return row


def _unknown(values: Mapping[str, Any]) -> BadRow:
    """Returns the refusal of a row that no layout recognises, which names its columns."""
    names = [shown(name)[1:-1] for name in list(values)[:COLUMNS_NAMED]]
    there = ", ".join([*names, *(["..."] if len(values) > COLUMNS_NAMED else [])]) or "no columns"
    what = f"the row has {there}. A task needs a prompt and a response: a mapping says which columns hold them"
    missing = [name for name in ("prompt", "response") if name not in values]
    if len(missing) == 1:
        return BadRow(f"the field {missing[0]} is missing: {what}", missing[0])
    return BadRow(f"the columns of the row are not known: {what}", next(iter(missing), ""))
