"""The first rows of an uploaded file, and the tasks that they would become. The rest of the file is not read.

The rows lie beside the upload, so that a page shows them under one mapping after another without reading the file.
"""

import gzip
import io
import json
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from django.utils.translation import gettext_noop

from annotator.infrastructure.storage import store
from annotator.models import Project
from annotator.stages.importing.decoders import ENCODED
from annotator.stages.importing.layouts import read_tasks
from annotator.stages.importing.layouts.tools import unnumbered
from annotator.stages.importing.mapped_rows import columns_of
from annotator.stages.importing.mappings import ColumnMapping
from annotator.stages.importing.sources import GZIP, read_decoded_file, read_rows
from annotator.stages.importing.task_rows import LEFT_OUT, ImportRules, RawRow, Rejected, TaskRow

_UNREAD = {"label_studio": ("results",), "argilla": ("responses",)}
"""The metadata in which a tool's answers are kept that nothing reads."""
SHORT = 60
MOST_ROWS = 20
MOST_TASKS = 5
HEAD_BYTES = 8 << 20
"""Bytes of the file that are read for the sample, before decompression."""
MOST_BYTES = 4 << 20
"""Bytes of rows after which the sample ends."""
SHOWN = 8_000
"""Characters of one text that a preview shows."""
TURNS_SHOWN = 20
"""The last turns of a conversation that a preview shows."""
NOTES = READ_AS_A_WHOLE, NO_ROW, GONE = (
    gettext_noop("A gzipped Parquet or Excel file is read as a whole, so none of its rows can be shown beforehand."),
    gettext_noop("The file has no row that can be shown."),
    gettext_noop("The file's first rows are not there any more."),
)


@dataclass(frozen=True)
class Sample:
    """The first rows of a file. Without any row, `note` is one of NOTES, which says why there is none to show."""

    rows: Sequence[RawRow]
    note: str = ""

    @property
    def columns(self) -> list[str]:
        return columns_of(self.rows)


@dataclass(frozen=True)
class SamplePreview:
    """What the sample's rows become: tasks, at most MOST_TASKS, and rows that would be refused.

    `layout` is that of the first task, or that by which the first refused row was recognised.
    """

    tasks: Sequence[TaskRow]
    refused: Sequence[Rejected]

    @property
    def layout(self) -> str:
        layouts = [*(task.layout for task in self.tasks), *(row.layout for row in self.refused)]
        return next(filter(None, layouts), "")

    def unread_questions(self) -> dict[str, list[str]]:
        """Returns the questions of another tool that none of ours stands for, with up to three answers to each."""
        found: dict[str, list[str]] = {}
        for task in self.tasks:
            for answer in chain.from_iterable(task.metadata.get(name, ()) for name in _UNREAD.get(task.layout, ())):
                name = unnumbered(str(answer.get("from_name") or answer.get("question") or ""))
                given = str(answer.get("value"))[:SHORT]
                if name and given not in found.setdefault(name, []) and len(found[name]) < 3:
                    found[name].append(given)
        return found


def preview(project: Project, sample: Sample, mapping: ColumnMapping | None, *, person: str = "") -> SamplePreview:
    """Reads the sample of a file, which may be one `person`'s, as an import would. Raises MissingColumn."""
    tasks: list[TaskRow] = []
    refused: list[Rejected] = []
    for row in read_tasks(iter(sample.rows), ImportRules.of(project, person), mapping):
        if isinstance(row, Rejected):
            refused.append(row)
        else:
            messages = [{**message, "content": _short(message["content"])} for message in row.messages[-TURNS_SHOWN:]]
            responses = tuple(replace(response, text=_short(response.text)) for response in row.responses)
            tasks.append(replace(row, messages=messages, responses=responses))
            refused += [Rejected(row.line, LEFT_OUT + why, of_rating=True) for why in row.left_out]
        if len(tasks) == MOST_TASKS:
            break
    return SamplePreview(tasks, refused)


def _short(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[:SHOWN]} […]"


# Taking and keeping a sample -------------------------------------------------------------------------------


class _EndOfHead(Exception):
    """The part of the file that a sample may take is read."""


class _Head(io.RawIOBase):
    """The first HEAD_BYTES of a file. It ends with an error and not as a file does, which might look cut off."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._room = HEAD_BYTES

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._file.read(min(len(buffer), self._room))
        if not data and not self._room:
            raise _EndOfHead
        self._room -= len(data)
        buffer[: len(data)] = data
        return len(data)


def take(path: Path) -> Sample:
    """Reads the first rows of the file. Raises UnreadableFile."""
    with path.open("rb") as file:
        if _is_zipped_table(file):
            return Sample([], READ_AS_A_WHOLE)
        head = file.read(8)
        file.seek(0)
        read = read_decoded_file(head, file) if head.startswith(ENCODED) else read_rows(cast(BinaryIO, _Head(file)))
        rows: list[RawRow] = []
        weight = 0
        with suppress(_EndOfHead), closing(read) as found:
            for row in islice(found, MOST_ROWS):
                rows.append(row)
                weight += row.size
                if weight > MOST_BYTES:
                    break
        return Sample(rows, "" if rows else NO_ROW)


def _is_zipped_table(file: BinaryIO) -> bool:
    is_zipped = file.read(2) == GZIP
    file.seek(0)
    if not is_zipped:
        return False
    try:
        with gzip.GzipFile(fileobj=file) as unzipped:
            return unzipped.read(8).startswith(ENCODED)
    except (OSError, EOFError):
        return False  # damaged: reading its rows says how
    finally:
        file.seek(0)


def keep(sample: Sample, path: Path) -> None:
    """Writes the sample to a file, from which `kept` reads it."""
    with path.open("w", encoding="ascii") as file:
        json.dump({"note": sample.note, "rows": [_as_json(row) for row in sample.rows]}, file)


def _as_json(row: RawRow) -> dict[str, Any]:
    try:
        json.dumps(row.values)
    except (RecursionError, ValueError):
        row = replace(row, values=None, error="the row is nested too deeply")
    return {"line": row.line, "values": row.values, "error": row.error, "from_csv": row.from_csv, "size": row.size}


def kept(path: Path) -> Sample:
    """Reads a sample that `keep` wrote; one without rows if the file is gone, as it is once the import has ended."""
    try:
        content = json.loads(store.content_of(path))
    except (OSError, ValueError):
        return Sample([], GONE)
    return Sample([RawRow(**row) for row in content["rows"]], content["note"])
