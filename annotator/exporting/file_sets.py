"""The set of files in which HelpSteer2 was published, as one zip that is written while it is read.

Beside them stand the tasks with their metadata, for which HelpSteer2's rows have no place.
"""

import zipfile
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import IO, Any, cast

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import F, Func, JSONField, OuterRef, QuerySet, Value

from annotator.exporting import labels, preferences
from annotator.exporting.columns import Row
from annotator.exporting.copied import Lines, copied, response_name
from annotator.exporting.filters import Filters
from annotator.exporting.formats import gzipped, json_lines
from annotator.models import Project, Response, Task


def task_rows(project: Project, filters: Filters, _unseen: QuerySet[Any]) -> Lines:
    """Reads a row for each task as it can be imported, with its metadata and, for managers, that of its responses."""
    responses = Response.objects.filter(task=OuterRef("pk")).order_by("position")
    known = [Value("id"), response_name(""), Value("text"), F("text")]
    known += [Value("model"), F("model"), Value("metadata"), F("metadata")] if filters.for_manager else []
    listed = Func(*known, function="json_build_object", output_field=JSONField())
    tasks = filters.of_tasks(Task.objects.filter(project=project), project).order_by("pk")
    rows = tasks.values_list(
        "external_id", "conversation", ArraySubquery(responses.values_list(listed)), "language", "metadata"
    )
    names = ["id", "messages", "responses", "language", "metadata"]
    return copied(project, rows, names, task="pk", among=filters.among)


Rows = Callable[[Project, Filters, QuerySet[Any]], Iterable[Row]]
FILES: dict[str, Rows] = {
    "train.jsonl.gz": partial(labels.rows_of_a_side, held_out=False),
    "validation.jsonl.gz": partial(labels.rows_of_a_side, held_out=True),
    "disagreements/disagreements.jsonl.gz": labels.disagreement_rows,
    "preference/preference.jsonl.gz": preferences.preference_rows,
    "tasks/tasks.jsonl.gz": task_rows,
}
_LONG_AGO = (1980, 1, 1, 0, 0, 0)
"""The time of every file, so that the same rows give the same bytes."""


def helpsteer2_files(project: Project, filters: Filters, unseen: QuerySet[Any]) -> Iterator[bytes]:
    """Yields a zip with the labels of both sides, the disagreements, the preferences and the tasks."""
    sink = _Sink()
    with zipfile.ZipFile(cast("IO[bytes]", sink), "w", zipfile.ZIP_STORED) as archive:
        for name, rows in FILES.items():
            with archive.open(zipfile.ZipInfo(name, _LONG_AGO), "w", force_zip64=True) as file:
                yield from _written(gzipped(json_lines(rows(project, filters, unseen))), file, sink)
    yield sink.take()


def _written(parts: Iterable[bytes], file: Any, sink: "_Sink") -> Iterator[bytes]:
    for part in parts:
        file.write(part)
        yield sink.take()


class _Sink:
    """Takes what an archive writes, until it is passed on. It cannot seek, so sizes follow behind each file."""

    def __init__(self) -> None:
        self._waiting: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._waiting.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        """What was written is taken by `take`."""

    def take(self) -> bytes:
        taken = b"".join(self._waiting)
        self._waiting.clear()
        return taken
