"""Bytes in, numbered raw rows out: JSON lines, a JSON list, CSV or Parquet, plain or gzipped, never whole in memory."""

import csv
import gzip
import io
import json
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from tempfile import SpooledTemporaryFile
from typing import IO, Any, BinaryIO, cast

from annotator.refusals import Refusal

GZIP = b"\x1f\x8b"
PARQUET = b"PAR1"
LONGEST_LINE = 16 * 1024 * 1024
"""Bytes. A longer line is reported, so that a file without line ends cannot fill the memory."""
_CHUNK = 1 << 16


class UnreadableFile(Refusal):
    """The file as a whole cannot be read; the message says why."""

    status = 400
    code = "unreadable"


@dataclass(frozen=True)
class RawRow:
    """One row as it stands in the file. `error` is set where it could not be read."""

    line: int
    values: dict[str, Any] | None
    error: str = ""
    from_csv: bool = False


def read_rows(stream: IO[bytes]) -> Iterator[RawRow]:
    """Sniffs the format by the first bytes and yields the rows in order."""
    source = io.BufferedReader(cast(Any, stream), _CHUNK) if not isinstance(stream, io.BufferedReader) else stream
    if source.peek(2)[:2] == GZIP:
        source = io.BufferedReader(cast(Any, gzip.GzipFile(fileobj=source)), _CHUNK)
    try:
        yield from _sniffed(source)
    except (gzip.BadGzipFile, EOFError, zlib.error) as broken:
        raise UnreadableFile(f"the gzip file is damaged or cut off: {broken}") from broken


def _sniffed(source: io.BufferedReader) -> Iterator[RawRow]:
    head = source.peek(_CHUNK)[:_CHUNK]
    if head[:4] == PARQUET:
        return _parquet_rows(source)
    first = head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    if first == b"[":
        return _list_rows(source)
    if first == b"{" or not first:
        return _json_rows(source)
    header = head.splitlines()[0] if head else b""
    # A first line that is neither JSON nor a header still belongs to a file of JSON lines that has good lines below.
    if b"," not in header and b"\n{" in head:
        return _json_rows(source)
    return _csv_rows(source)


def _lines(source: BinaryIO) -> Iterator[tuple[int, bytes | None]]:
    """Numbered lines; None stands for one that is too long."""
    number = 0
    while line := source.readline(LONGEST_LINE):
        number += 1
        if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
            while (rest := source.readline(_CHUNK)) and not rest.endswith(b"\n"):
                pass
            yield number, None
        else:
            yield number, line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line


def _json_rows(source: io.BufferedReader) -> Iterator[RawRow]:
    for number, line in _lines(source):
        if line is None:
            yield RawRow(number, None, f"the line is longer than {LONGEST_LINE >> 20} MiB")
        elif line.strip():
            yield _json_row(number, line)


def _json_row(number: int, line: bytes) -> RawRow:
    try:
        values = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as wrong:
        return RawRow(number, None, f"not UTF-8: byte {wrong.object[wrong.start]:#04x} at position {wrong.start + 1}")
    except (ValueError, RecursionError) as wrong:
        return RawRow(number, None, f"not JSON: {wrong}")
    return _object_row(number, values)


def _object_row(number: int, values: Any) -> RawRow:
    if isinstance(values, dict):
        return RawRow(number, values)
    return RawRow(number, None, f"not a JSON object but {type(values).__name__}")


def _list_rows(source: io.BufferedReader) -> Iterator[RawRow]:
    """The elements of one JSON list, decoded one at a time; `line` counts elements."""
    text = io.TextIOWrapper(source, encoding="utf-8-sig")
    decoder = json.JSONDecoder()
    buffer, number, closed = "", 0, False
    try:
        buffer = text.read(_CHUNK).lstrip()[1:]
        while True:
            buffer = buffer.lstrip(" \t\r\n,")
            if buffer.startswith("]"):
                closed = True
                break
            try:
                values, end = decoder.raw_decode(buffer)
            except ValueError as wrong:
                # Reading at least as much again keeps a long element linear in its length.
                more = text.read(max(_CHUNK, len(buffer)))
                if not more:
                    raise UnreadableFile(f"the JSON list is broken after element {number}: {wrong}") from wrong
                if len(buffer) > LONGEST_LINE:
                    raise UnreadableFile(f"element {number + 1} of the JSON list is too long or broken") from wrong
                buffer += more
                continue
            if end == len(buffer) and not isinstance(values, dict | list | str):
                buffer += text.read(_CHUNK)  # a number may go on in the next chunk
                values, end = decoder.raw_decode(buffer)
            number += 1
            buffer = buffer[end:]
            yield _object_row(number, values)
    except UnicodeDecodeError as wrong:
        raise UnreadableFile(f"not UTF-8 after element {number} of the JSON list: {wrong.reason}") from wrong
    if closed and (buffer[1:].strip() or text.read(_CHUNK).strip()):
        raise UnreadableFile("there is more after the end of the JSON list")


def _csv_rows(source: io.BufferedReader) -> Iterator[RawRow]:
    csv.field_size_limit(LONGEST_LINE)
    # Undecodable bytes survive as surrogates, so that the one row that has them can be named.
    text = io.TextIOWrapper(source, encoding="utf-8-sig", errors="surrogateescape", newline="")
    reader = csv.reader(text, strict=True)
    try:
        columns = next(reader, [])
    except csv.Error as wrong:
        raise UnreadableFile(f"the CSV header cannot be read: {wrong}") from wrong
    if len(columns) < 2 or len(set(columns)) != len(columns):
        raise UnreadableFile("neither JSON lines, a JSON list, CSV with a header of two or more columns, nor Parquet")
    yield from _csv_records(reader, columns)


def _csv_records(reader: Any, columns: list[str]) -> Iterator[RawRow]:
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as wrong:
            yield RawRow(line, None, f"not CSV: {wrong}", from_csv=True)
            continue
        if not cells:
            continue
        if len(cells) != len(columns):
            error = f"{len(cells)} cells under {len(columns)} columns"
            yield RawRow(line, None, error, from_csv=True)
        else:
            yield RawRow(line, dict(zip(columns, cells, strict=True)), from_csv=True)


def _parquet_rows(source: Iterable[bytes]) -> Iterator[RawRow]:
    import pyarrow
    import pyarrow.parquet

    with SpooledTemporaryFile(max_size=1 << 22) as seekable:
        for block in source:
            seekable.write(block)
        seekable.seek(0)
        number = 0
        try:
            for batch in pyarrow.parquet.ParquetFile(seekable).iter_batches(batch_size=500):
                for values in batch.to_pylist():
                    number += 1
                    yield RawRow(number, {key: value for key, value in values.items() if value is not None})
        except pyarrow.ArrowException as broken:
            raise UnreadableFile(f"the Parquet file cannot be read: {broken}") from broken
