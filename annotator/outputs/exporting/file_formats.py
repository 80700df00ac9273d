"""Encodes rows as the bytes of a file, a part at a time: JSON lines, a JSON list, CSV or Parquet, packed on request."""

import json
import os
import subprocess
import sys
import threading
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryFile
from typing import Any

import orjson
from django.core.serializers.json import DjangoJSONEncoder

from annotator.infrastructure.spreadsheets import csv_of_cells
from annotator.models import Project
from annotator.outputs.exporting.columns import JSON, Row, Type
from annotator.outputs.exporting.copied import Lines, without_line_ends
from annotator.stages.importing.decoders import PASSED_ON

FORMATS = {
    "jsonl": "application/x-ndjson",
    "json": "application/json",
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
    "zip": "application/zip",
}
GZIP = "application/gzip"
WRITER = Path(__file__).with_name("parquet_process.py")
AT_ONCE = 100
"""Rows that are handed to the process that writes Parquet before what it has written is passed on."""
_CHUNK = 1 << 18
_BLOCK = 1 << 18
_ENCODER = DjangoJSONEncoder(ensure_ascii=False, separators=(",", ":"))


class WriterFailed(Exception):
    """The process that writes Parquet has ended early; the message is what it said."""


def encoded(rows: Iterable[Row], columns: Mapping[str, Type], *, format: str, gzip: bool = False) -> Iterator[bytes]:
    """Yields the rows as the bytes of a file."""
    if format == "csv":
        # An object's columns are its values', such as the scores of the attributes.
        flat: list[str] = []
        for name, kind in columns.items():
            flat += list(kind) if isinstance(kind, Mapping) else [name]
        parts = csv_of_cells(_cells(rows, columns), flat)
    elif format == "parquet":
        parts = _parquet(rows, columns)
    elif format == "json":
        parts = _json_list(rows)
    else:
        parts = json_lines(rows)
    return gzipped(parts) if gzip else _blocks(parts)


def content_type(format: str, *, gzip: bool) -> str:
    return GZIP if gzip and format != "zip" else FORMATS[format]


def file_name(project: Project, layout: str, format: str, *, gzip: bool) -> str:
    """Returns what a downloaded export is called."""
    return f"{project.slug}-{layout}.{format}{'.gz' if gzip and format != 'zip' else ''}"


def json_lines(rows: Iterable[Row]) -> Iterator[bytes]:
    """Yields each row as a line, which rows of the database are already."""
    return rows.lines if isinstance(rows, Lines) else (without_line_ends(_json(row)) + b"\n" for row in rows)


def _json(value: Any) -> bytes:
    try:
        return orjson.dumps(value, _ENCODER.default, orjson.OPT_PASSTHROUGH_DATETIME)
    except orjson.JSONEncodeError:  # such as whole numbers of more than 64 bits
        return _ENCODER.encode(value).encode()


def _blocks(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Joins lines into blocks that are worth an answer's part. The first line does not wait for others."""
    waiting: list[bytes] = []
    size = _BLOCK
    for line in lines:
        waiting.append(line)
        size += len(line)
        if size >= _BLOCK:
            yield b"".join(waiting)
            waiting, size = [], 0
    if waiting:
        yield b"".join(waiting)


def _json_list(rows: Iterable[Row]) -> Iterator[bytes]:
    before = b"[\n"
    for line in json_lines(rows):
        yield before + line[:-1]
        before = b",\n"
    yield b"\n]\n" if before != b"[\n" else b"[]\n"


def _cells(rows: Iterable[Row], columns: Mapping[str, Type]) -> Iterator[list[Any]]:
    """Yields each row's values in the order of the columns: lists become JSON texts."""
    keys = {name: list(kind) if isinstance(kind, Mapping) else None for name, kind in columns.items()}
    kinds = chain.from_iterable(kind.values() if isinstance(kind, Mapping) else [kind] for kind in columns.values())
    lists = [place for place, kind in enumerate(kinds) if kind == JSON or not isinstance(kind, str)]
    for row in rows:
        cells: list[Any] = []
        for name, parts in keys.items():
            value = row.get(name)
            if parts is None:
                cells.append(value)
            else:
                cells += map((value or {}).get, parts)
        for place in lists:
            if cells[place] is not None:
                cells[place] = _json(cells[place]).decode()
        yield cells


def gzipped(parts: Iterable[bytes]) -> Iterator[bytes]:
    # 31: with gzip's head, whose time stays 0, so that the same rows give the same bytes.
    packer = zlib.compressobj(6, zlib.DEFLATED, 31)
    for part in parts:
        if packed := packer.compress(part):
            yield packed
    yield packer.flush()


def _parquet(rows: Iterable[Row], columns: Mapping[str, Type]) -> Iterator[bytes]:
    """Yields a Parquet file, which a process of its own writes: the web does not load the library.

    Raises:
        WriterFailed: The process has ended early.
    """
    waiting = json_lines(rows)
    # Parquet knows no objects without fields, such as the scores of a rubric that is about segments alone.
    columns = {name: kind for name, kind in columns.items() if kind != {}}
    environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    with TemporaryFile() as errors:
        # With -P the modules of this folder cannot hide those of the same names that the writer imports.
        process = subprocess.Popen(
            [sys.executable, "-P", str(WRITER), json.dumps(columns)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=environment | {"OMP_NUM_THREADS": "1"},
        )
        assert process.stdin
        assert process.stdout
        written: SimpleQueue[bytes] = SimpleQueue()
        # The rows are read in this thread, which holds the database's connection; another one keeps the pipe empty.
        reader = threading.Thread(target=_pass_on, args=(process.stdout, written), daemon=True)
        reader.start()
        try:
            while some := list(islice(waiting, AT_ONCE)):
                process.stdin.write(b"".join(some))
                while not written.empty():
                    if not (part := written.get()):
                        raise BrokenPipeError
                    yield part
            process.stdin.close()
            while part := written.get():
                yield part
            failed = process.wait() != 0
        except BrokenPipeError:
            failed = True
        finally:
            process.kill()
            process.wait()
            with suppress(BrokenPipeError):
                process.stdin.close()
            reader.join()
            process.stdout.close()
        if failed:
            errors.seek(0)
            raise WriterFailed(errors.read(2_000).decode(errors="replace"))


def _pass_on(pipe: Any, written: SimpleQueue[bytes]) -> None:
    """Moves what comes out of the pipe into the queue; the end is an empty part."""
    while part := pipe.read1(_CHUNK):
        written.put(part)
    written.put(b"")
