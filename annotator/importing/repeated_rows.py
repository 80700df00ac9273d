"""Gathers what is said of the rows of a batch, also of those that repeat a task and bring other metadata.

A task keeps the metadata that it has, so the result has to say that others were not stored.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from annotator.importing.notes import Notes
from annotator.importing.rows import TaskRow
from annotator.models import Task

OTHER_METADATA = "The task is there already with other metadata. It keeps its own, and that of this row is not stored."


def notes_of(new: Mapping[str, TaskRow], known: Sequence[tuple[str, TaskRow]], stored: Mapping[str, int]) -> Notes:
    """Returns what is said of new and known rows, by the names of their tasks. `stored` are the ids of known tasks.

    A known row may also repeat one of the new ones.
    """
    noted = Notes()
    for row in (*new.values(), *(row for _, row in known)):
        noted.add(row)
    for row in _of_other_metadata(new, known, stored):
        noted.add_text(OTHER_METADATA, row.line)
    return noted


def _of_other_metadata(
    new: Mapping[str, TaskRow], known: Sequence[tuple[str, TaskRow]], stored: Mapping[str, int]
) -> list[TaskRow]:
    given = [(name, row) for name, row in known if row.metadata]
    ids = [stored[name] for name, _ in given if name in stored]
    there = dict(Task.objects.filter(pk__in=ids).values_list("pk", "metadata")) if ids else {}
    return [
        row
        for name, row in given
        if _differs(row.metadata, there.get(stored[name]) if name in stored else new[name].metadata)
    ]


def _differs(given: Mapping[str, Any], there: Mapping[str, Any] | None) -> bool:
    # Earlier versions kept the language as `lang`, too, which a mapping had read from another column.
    return given != {key: value for key, value in (there or {}).items() if key != "lang" or key in given}
