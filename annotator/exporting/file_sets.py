"""The set of files in which HelpSteer2 was published, as one zip that is written while it is read."""

import zipfile
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import IO, Any, cast

from django.db.models import QuerySet

from annotator.exporting import labels, preferences
from annotator.exporting.columns import Row
from annotator.exporting.filters import Filters
from annotator.exporting.formats import gzipped, json_lines
from annotator.models import Project

Rows = Callable[[Project, Filters, QuerySet[Any]], Iterable[Row]]
FILES: dict[str, Rows] = {
    "train.jsonl.gz": partial(labels.rows_of_a_side, held_out=False),
    "validation.jsonl.gz": partial(labels.rows_of_a_side, held_out=True),
    "disagreements/disagreements.jsonl.gz": labels.disagreement_rows,
    "preference/preference.jsonl.gz": preferences.preference_rows,
}
_LONG_AGO = (1980, 1, 1, 0, 0, 0)
"""The time of every file, so that the same rows give the same bytes."""


def helpsteer2_files(project: Project, filters: Filters, unseen: QuerySet[Any]) -> Iterator[bytes]:
    """Yields a zip with the labels of both sides, the disagreements and the preferences."""
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
