"""Bytes in, numbered raw rows out: JSON lines, a JSON list, CSV or Parquet, plain or gzipped, never whole in memory."""

import csv
import gzip
import io
import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any, BinaryIO, cast

from django.conf import settings

from annotator.exporting.spreadsheets import text_of_cell
from annotator.importing.expansion_limits import FileTooLarge, Incoming, Metered, UnreadableFile, Unzipped
from annotator.importing.parquet import UnreadableParquet, parquet_lines

GZIP = b"\x1f\x8b"
PARQUET = b"PAR1"
UTF16 = (b"\xff\xfe", b"\xfe\xff")
MOST_COLUMNS = 200
_CHUNK = 1 << 16
_DECODER = json.JSONDecoder()
_LIST_AS_A_LINE = re.compile(rb"\[[^\n]*\][ \t\r]*\n\s*\{")
_SPACE, _SPACE_AND_COMMAS = re.compile(r"[ \t\r\n]*"), re.compile(r"[ \t\r\n,]*")


@dataclass(frozen=True)
class RawRow:
    """One row as it stands in the file, of so many bytes or characters. `error` is set where it could not be read."""

    line: int
    values: dict[str, Any] | None
    error: str = ""
    from_csv: bool = False
    size: int = 0


class _RowTooLong(Exception):
    """A row exceeds IMPORT_MAX_ROW_BYTES."""

    def __str__(self) -> str:
        return (
            f"the row is longer than {settings.IMPORT_MAX_ROW_BYTES:,} bytes: "
            "shorten it, or ask the operator to raise IMPORT_MAX_ROW_BYTES"
        )


def read_rows(stream: IO[bytes] | Incoming) -> Iterator[RawRow]:
    """Sniffs the format by the first bytes and yields the rows in order; damage on the way is the last row.

    Raises:
        UnreadableFile: before the first row.
    """
    incoming = stream if isinstance(stream, Incoming) else Incoming(stream)
    source = _buffered(incoming)
    line, most = 0, settings.IMPORT_MAX_ROWS
    try:
        if source.peek(2)[:2] == GZIP:
            source = _buffered(Unzipped(source, incoming))
        for row in _sniffed(_buffered(Metered(source))):
            line = row.line
            if line > most:
                raise _too_many_rows()
            yield row
            del row  # or a large one stays while the next is read
    except (gzip.BadGzipFile, EOFError, zlib.error) as broken:
        if not line:
            raise UnreadableFile(f"the gzip file is damaged or cut off: {broken}") from broken
        yield RawRow(line + 1, None, f"the gzip file is damaged or cut off here: {broken}")
    except FileTooLarge as much:
        if not line:
            raise
        yield RawRow(line + 1, None, f"the rest is not read: {much}")


def _buffered(raw: io.RawIOBase) -> io.BufferedReader:
    return io.BufferedReader(cast(Any, raw), _CHUNK)


def _too_many_rows() -> FileTooLarge:
    most = f"{settings.IMPORT_MAX_ROWS:,}"
    return FileTooLarge(f"the file has more than {most} rows: split it, or ask the operator to raise IMPORT_MAX_ROWS")


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


# JSON lines ------------------------------------------------------------------------------------------------


def _lines(source: BinaryIO) -> Iterator[tuple[int, bytes | None]]:
    """Numbered lines; None stands for one that is too long."""
    number, most, most_rows = 0, settings.IMPORT_MAX_ROW_BYTES, settings.IMPORT_MAX_ROWS
    while line := source.readline(most + 1):
        number += 1
        if number > most_rows:
            raise _too_many_rows()
        if len(line) > most and not line.endswith(b"\n"):
            while (rest := source.readline(_CHUNK)) and not rest.endswith(b"\n"):
                pass
            yield number, None
        else:
            yield number, line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line


def _json_rows(source: BinaryIO) -> Iterator[RawRow]:
    for number, line in _lines(source):
        if line is None:
            yield RawRow(number, None, str(_RowTooLong()))
        elif line.strip():
            yield _json_row(number, line)


def _json_row(number: int, line: bytes) -> RawRow:
    try:
        values = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as wrong:
        return RawRow(number, None, f"not UTF-8: byte {wrong.object[wrong.start]:#04x} at position {wrong.start + 1}")
    except (ValueError, RecursionError) as wrong:
        return RawRow(number, None, f"not JSON: {wrong}")
    return _object_row(number, values, len(line))


def _object_row(number: int, values: Any, size: int) -> RawRow:
    if isinstance(values, dict):
        return RawRow(number, values, size=size)
    return RawRow(number, None, f"not a JSON object but {type(values).__name__}")


# A JSON list -----------------------------------------------------------------------------------------------


def _list_rows(source: BinaryIO) -> Iterator[RawRow]:
    """The elements of one JSON list, decoded one at a time; `line` counts elements."""
    # Undecodable bytes survive as surrogates, so that the one element that has them can be named.
    text = _JsonText(io.TextIOWrapper(source, encoding="utf-8-sig", errors="surrogateescape"))
    number = 0
    text.pass_over(_SPACE)
    text.step()
    try:
        while text.pass_over(_SPACE_AND_COMMAS) != "]":
            values, size = text.element()
            number += 1
            yield _object_row(number, values, size)
    except (ValueError, RecursionError, _RowTooLong) as wrong:
        yield RawRow(number + 1, None, f"the JSON list is broken or cut off here: {wrong}")
        return
    text.step()
    if text.pass_over(_SPACE):
        yield RawRow(number + 1, None, "there is more after the end of the JSON list")


class _JsonText:
    """A JSON text of any length, read on as far as the element that is looked at asks for."""

    def __init__(self, text: io.TextIOWrapper) -> None:
        self._text = text
        self._held, self._at = "", 0

    def _read_on(self, size: int) -> bool:
        more = self._text.read(size)
        self._held, self._at = self._held[self._at :] + more, 0
        return bool(more)

    def step(self) -> None:
        self._at += 1

    def pass_over(self, pattern: re.Pattern[str]) -> str:
        """The next character behind what the pattern matches; empty at the end of the text."""
        while True:
            if found := pattern.match(self._held, self._at):
                self._at = found.end()
            if self._at < len(self._held):
                return self._held[self._at]
            if not self._read_on(_CHUNK):
                return ""

    def element(self) -> tuple[Any, int]:
        """The value that begins here, and how many characters it has."""
        most = settings.IMPORT_MAX_ROW_BYTES
        while True:
            held = len(self._held) - self._at
            try:
                value, end = _DECODER.raw_decode(self._held, self._at)
            except ValueError:
                if held > most:
                    raise _RowTooLong from None
                # Reading at least as much again keeps a long element linear in its length.
                if not self._read_on(min(max(_CHUNK, held), most + 1 - held)):
                    raise
            else:
                size = end - self._at
                # A number may go on in what is not read yet.
                if end < len(self._held) or isinstance(value, dict | list | str) or not self._read_on(_CHUNK):
                    self._at += size
                    return value, size


# CSV -------------------------------------------------------------------------------------------------------


class _CsvLines:
    """The lines of a CSV file, as csv.reader asks for them: of one record no more than a row may have."""

    def __init__(self, source: BinaryIO) -> None:
        # Undecodable bytes survive as surrogates, so that the one row that has them can be named.
        self._text = io.TextIOWrapper(source, encoding="utf-8-sig", errors="surrogateescape", newline="")
        self.number = 0
        self.taken = 0

    def __iter__(self) -> "_CsvLines":
        return self

    def __next__(self) -> str:
        most = settings.IMPORT_MAX_ROW_BYTES
        # By pieces: iterating would take a file without line ends into memory whole.
        piece = self._text.readline(most + 1)
        if not piece:
            raise StopIteration
        self.number += 1
        self.taken += len(piece)
        if self.taken > most:
            while piece and not piece.endswith(("\n", "\r")):
                piece = self._text.readline(_CHUNK)
            raise _RowTooLong
        return piece


def _csv_rows(source: BinaryIO) -> Iterator[RawRow]:
    csv.field_size_limit(settings.IMPORT_MAX_ROW_BYTES)
    lines = _CsvLines(source)
    reader = csv.reader(lines, strict=True)
    try:
        columns = next(reader, [])
    except (csv.Error, _RowTooLong) as wrong:
        raise UnreadableFile(f"the CSV header cannot be read: {wrong}") from wrong
    if len(columns) < 2 or len(set(columns)) != len(columns):
        raise UnreadableFile("neither JSON lines, a JSON list, CSV with a header of two or more columns, nor Parquet")
    if len(columns) > MOST_COLUMNS:
        raise UnreadableFile(f"the CSV header has {len(columns):,} columns, and at most {MOST_COLUMNS} are read")
    yield from _csv_records(reader, lines, columns)


def _csv_records(reader: Any, lines: _CsvLines, columns: list[str]) -> Iterator[RawRow]:
    while True:
        line, lines.taken = lines.number + 1, 0
        try:
            cells = next(reader)
        except StopIteration:
            return
        except (csv.Error, _RowTooLong) as wrong:
            yield RawRow(line, None, f"not CSV: {wrong}" if isinstance(wrong, csv.Error) else str(wrong), from_csv=True)
            continue
        if not cells:
            continue
        if len(cells) != len(columns):
            error = f"{len(cells)} cells under {len(columns)} columns"
            yield RawRow(line, None, error, from_csv=True)
        else:
            values = dict(zip(columns, map(text_of_cell, cells), strict=True))
            yield RawRow(line, values, from_csv=True, size=lines.taken)


# Parquet ---------------------------------------------------------------------------------------------------


def _parquet_rows(source: BinaryIO) -> Iterator[RawRow]:
    number = 0
    try:
        with parquet_lines(source) as decoded:
            for number, line in _lines(_buffered(Metered(decoded))):
                yield _parquet_row(number, line)
    except UnreadableParquet as broken:
        if not number:
            raise UnreadableFile(f"the Parquet file cannot be read: {broken}") from broken
        yield RawRow(number + 1, None, f"the Parquet file is damaged here: {broken}")


def _parquet_row(number: int, line: bytes | None) -> RawRow:
    """A line of the process that decodes: a JSON object, or a text that says what is wrong with the row."""
    if line is None:
        return RawRow(number, None, str(_RowTooLong()))
    values = json.loads(line)
    return RawRow(number, None, values) if isinstance(values, str) else RawRow(number, values, size=len(line))
