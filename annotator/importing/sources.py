"""Bytes in, numbered raw rows out: JSON lines, a JSON list, CSV or Parquet, plain or gzipped, never whole in memory."""

import csv
import gzip
import io
import json
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from tempfile import SpooledTemporaryFile
from typing import IO, Any, BinaryIO, cast

from annotator.refusals import Refusal

GZIP = b"\x1f\x8b"
PARQUET = b"PAR1"
UTF16 = (b"\xff\xfe", b"\xfe\xff")
LONGEST_LINE = 16 * 1024 * 1024
"""Bytes. A longer line is reported, so that a file without line ends cannot fill the memory."""
_CHUNK = 1 << 16
_DECODER = json.JSONDecoder()
_LIST_AS_A_LINE = re.compile(rb"\[[^\n]*\][ \t\r]*\n\s*\{")


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


class _Unzipped(io.RawIOBase):
    """What a gzip file holds, up to the very byte where it is damaged: GzipFile itself would lose a block before it."""

    def __init__(self, source: IO[bytes]) -> None:
        self._file = gzip.GzipFile(fileobj=source)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._file.read1(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def read_rows(stream: IO[bytes]) -> Iterator[RawRow]:
    """Sniffs the format by the first bytes and yields the rows in order; damage on the way is the last row.

    Raises:
        UnreadableFile: before the first row.
    """
    source = io.BufferedReader(cast(Any, stream), _CHUNK) if not isinstance(stream, io.BufferedReader) else stream
    if source.peek(2)[:2] == GZIP:
        source = io.BufferedReader(_Unzipped(source), _CHUNK)
    line = 0
    try:
        for row in _sniffed(source):
            line = row.line
            yield row
    except (gzip.BadGzipFile, EOFError, zlib.error) as broken:
        if not line:
            raise UnreadableFile(f"the gzip file is damaged or cut off: {broken}") from broken
        yield RawRow(line + 1, None, f"the gzip file is damaged or cut off here: {broken}")


def _sniffed(source: io.BufferedReader) -> Iterator[RawRow]:
    head = source.peek(_CHUNK)[:_CHUNK]
    if head[:4] == PARQUET:
        return _parquet_rows(source)
    if head[:2] in UTF16:
        raise UnreadableFile("the file is UTF-16: save it as UTF-8")
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text[:1] == b"[" and not _LIST_AS_A_LINE.match(text):
        return _list_rows(source)
    if text[:1] in (b"{", b"[", b""):
        return _json_rows(source)
    # A first line that is neither JSON nor a header still belongs to a file of JSON lines that has good lines below.
    if b"\n{" in text and not _is_header(text.splitlines()[0]):
        return _json_rows(source)
    return _csv_rows(source)


def _is_header(line: bytes) -> bool:
    return bool({b"prompt", b"response"} & {cell.strip(b' "') for cell in line.split(b",")})


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
    # Undecodable bytes survive as surrogates, so that the one element that has them can be named.
    text = io.TextIOWrapper(source, encoding="utf-8-sig", errors="surrogateescape")
    number, buffer = 0, text.read(_CHUNK).lstrip()[1:]
    try:
        while True:
            buffer = buffer.lstrip(" \t\r\n,")
            if buffer.startswith("]"):
                break
            values, buffer = _next_element(buffer, text)
            number += 1
            yield _object_row(number, values)
    except (ValueError, RecursionError) as wrong:
        yield RawRow(number + 1, None, f"the JSON list is broken or cut off here: {wrong}")
        return
    if buffer[1:].strip() or text.read(_CHUNK).strip():
        yield RawRow(number + 1, None, "there is more after the end of the JSON list")


def _next_element(buffer: str, text: io.TextIOWrapper) -> tuple[Any, str]:
    """The value at the buffer's start and what follows it, reading on until the value is whole."""
    while True:
        try:
            values, end = _DECODER.raw_decode(buffer)
        except ValueError:
            # Reading at least as much again keeps a long element linear in its length.
            more = text.read(max(_CHUNK, len(buffer)))
            if not more or len(buffer) > LONGEST_LINE:
                raise
        else:
            if end < len(buffer) or isinstance(values, dict | list | str):
                return values, buffer[end:]
            more = text.read(_CHUNK)  # a number may go on in the next chunk
            if not more:
                return values, ""
        buffer += more


def _csv_rows(source: io.BufferedReader) -> Iterator[RawRow]:
    csv.field_size_limit(LONGEST_LINE)
    # Undecodable bytes survive as surrogates, so that the one row that has them can be named.
    text = io.TextIOWrapper(source, encoding="utf-8-sig", errors="surrogateescape", newline="")
    # By pieces: iterating would take a file without line ends into memory whole.
    reader = csv.reader(iter(lambda: text.readline(LONGEST_LINE), ""), strict=True)
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
                    yield RawRow(number, _without_nulls(values))
        except (pyarrow.ArrowException, OSError) as broken:
            if not number:
                raise UnreadableFile(f"the Parquet file cannot be read: {broken}") from broken
            yield RawRow(number + 1, None, f"the Parquet file is damaged here: {broken}")


def _without_nulls(value: Any) -> Any:
    """Parquet's rows have every field of the schema; a null is a field that is not there."""
    if isinstance(value, dict):
        return {key: _without_nulls(each) for key, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value
