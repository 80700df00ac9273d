"""Reads text files and tables, plain or gzipped, as numbered raw rows, never whole in memory.

Text files are JSON lines, a JSON list or CSV. Parquet, Arrow and Excel are decoded in a process (decoders.py).
"""

import csv
import gzip
import io
import json
import re
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import Enum, auto
from itertools import chain
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from django.conf import settings

from annotator.exporting.spreadsheets import text_of_cell
from annotator.importing.decoders import EXCEL, Undecodable, decoded_file_lines, decoded_lines, program_for
from annotator.importing.expansion_limits import FileTooLarge, Incoming, Metered, UnreadableFile, Unzipped

GZIP = b"\x1f\x8b"
UTF16 = (b"\xff\xfe", b"\xfe\xff")
MOST_COLUMNS = 200
ENDINGS = (".jsonl", ".json", ".csv", ".tsv", ".parquet", ".arrow", ".xlsx")
"""How the names of files that can be read end, before .gz."""
DELIMITERS = (",", ";", "\t")
_CHUNK = 1 << 16
_Decoded = AbstractContextManager[io.BufferedReader]
_DECODER = json.JSONDecoder()
_LIST_AS_A_LINE = re.compile(rb"\[[^\n]*\][ \t\r]*\n\s*\{")
_SPACE, _SPACE_AND_COMMAS = re.compile(r"[ \t\r\n]*"), re.compile(r"[ \t\r\n,]*")


@dataclass(frozen=True)
class RawRow:
    """One row of the file, unchecked. `size` counts bytes or characters; `error` says why it could not be read.

    `field` names the field or the column that the error is about, if it is about a single one.
    """

    line: int
    values: dict[str, Any] | None
    error: str = ""
    from_csv: bool = False
    size: int = 0
    field: str = ""


class _RowTooLong(Exception):
    """A row exceeds IMPORT_MAX_ROW_BYTES."""

    def __str__(self) -> str:
        return (
            f"the row is longer than {settings.IMPORT_MAX_ROW_BYTES:,} bytes: "
            "shorten it, or ask the operator to raise IMPORT_MAX_ROW_BYTES"
        )


def read_rows(stream: IO[bytes] | Incoming) -> Iterator[RawRow]:
    """Detects the format from the first bytes and yields the rows in order. Damage further on becomes the last row.

    Raises:
        UnreadableFile: The file cannot be read at all; raised before the first row.
    """
    incoming = stream if isinstance(stream, Incoming) else Incoming(stream)
    source = _buffered(incoming)
    line, most = 0, settings.IMPORT_MAX_ROWS
    try:
        if source.peek(2)[:2] == GZIP:
            source = _buffered(Unzipped(source, incoming))
        # Metered behind the decompression, as the limit is on the bytes that a file expands to.
        for row in _sniffed(_buffered(Metered(source))):
            line = row.line
            if line > most:
                raise _too_many_rows()
            yield row
            del row  # a large row would stay in memory while the next one is read
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
    if program := program_for(head):
        return _decoded_rows(program, decoded_lines(program, source))
    if head[:2] in UTF16:
        raise UnreadableFile("the file is UTF-16: save it as UTF-8")
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text[:1] == b"[" and not _LIST_AS_A_LINE.match(text):
        return _list_rows(source)
    if text[:1] in (b"{", b"[", b""):
        return _json_rows(source)
    # A first line that is neither JSON nor a header still belongs to a file of JSON lines that has good lines below.
    first_cells = {cell.strip(b' "') for cell in text.splitlines()[0].split(b",")}
    if b"\n{" in text and not first_cells & {b"prompt", b"response"}:
        return _json_rows(source)
    return _csv_rows(source)


# JSON lines ------------------------------------------------------------------------------------------------


def _lines(source: BinaryIO) -> Iterator[tuple[int, bytes | None]]:
    """Yields numbered lines, and None in place of a line that is too long."""
    number, most, most_rows = 0, settings.IMPORT_MAX_ROW_BYTES, settings.IMPORT_MAX_ROWS
    while line := source.readline(most + 1):
        number += 1
        if number > most_rows:
            raise _too_many_rows()
        if len(line) > most and not line.endswith(b"\n"):
            # Skipped by pieces: a line without an end must not be collected in memory.
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


# A function of its own, so that no local variable of the generator keeps a decoded row while the next one is read.
def _json_row(number: int, line: bytes) -> RawRow:
    try:
        values = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as wrong:
        return RawRow(number, None, f"not UTF-8: byte {wrong.object[wrong.start]:#04x} at position {wrong.start + 1}")
    except ValueError as wrong:
        return RawRow(number, None, f"not JSON: {wrong}")
    except RecursionError:
        return RawRow(number, None, "the row is nested too deeply")
    return _object_row(number, values, len(line))


def _object_row(number: int, values: Any, size: int) -> RawRow:
    if isinstance(values, dict):
        return RawRow(number, values, size=size)
    return RawRow(number, None, f"not a JSON object but {type(values).__name__}")


# A JSON list -----------------------------------------------------------------------------------------------


def _list_rows(source: BinaryIO) -> Iterator[RawRow]:
    """Yields the elements of one JSON list, decoded one at a time; `line` counts elements."""
    # Undecodable bytes become surrogates, so that a later check can name the one element that has them.
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
        # Where the next element begins cannot be known behind a broken one.
        yield RawRow(number + 1, None, f"the JSON list is broken or cut off here: {wrong}")
        return
    text.step()
    if text.pass_over(_SPACE):
        yield RawRow(number + 1, None, "there is more after the end of the JSON list")


class _JsonText:
    """A JSON text of any length, of which only as much is read as the current element needs."""

    def __init__(self, text: io.TextIOWrapper) -> None:
        self._text = text
        self._buffer, self._at = "", 0

    def _read_on(self, size: int) -> bool:
        more = self._text.read(size)
        self._buffer, self._at = self._buffer[self._at :] + more, 0
        return bool(more)

    def step(self) -> None:
        self._at += 1

    def pass_over(self, pattern: re.Pattern[str]) -> str:
        """Skips what the pattern matches and returns the character behind it, or an empty text at the end."""
        while True:
            if match := pattern.match(self._buffer, self._at):
                self._at = match.end()
            if self._at < len(self._buffer):
                return self._buffer[self._at]
            if not self._read_on(_CHUNK):
                return ""

    def element(self) -> tuple[Any, int]:
        """Reads the value that begins here; returns it and its length in characters."""
        most = settings.IMPORT_MAX_ROW_BYTES
        while True:
            available = len(self._buffer) - self._at
            try:
                value, end = _DECODER.raw_decode(self._buffer, self._at)
            except ValueError:
                if available > most:
                    raise _RowTooLong from None
                # Each read decodes from the start again. Doubling the text keeps the whole work linear in its length.
                if not self._read_on(min(max(_CHUNK, available), most + 1 - available)):
                    raise
            else:
                size = end - self._at
                # A number may go on in the part that has not been read yet.
                if end < len(self._buffer) or isinstance(value, dict | list | str) or not self._read_on(_CHUNK):
                    self._at += size
                    return value, size


# CSV -------------------------------------------------------------------------------------------------------


class _CsvLines:
    """The lines of a CSV file for csv.reader. Raises _RowTooLong when one record takes more than a row may have."""

    def __init__(self, source: BinaryIO) -> None:
        # Undecodable bytes become surrogates, so that a later check can name the one row that has them.
        self._text = io.TextIOWrapper(source, encoding="utf-8-sig", errors="surrogateescape", newline="")
        self.number = 0
        self.taken = 0
        self.delimiter = ","

    def __iter__(self) -> "_CsvLines":
        return self

    def __next__(self) -> str:
        most = settings.IMPORT_MAX_ROW_BYTES
        # Read by pieces: iterating would take a file without line ends into memory as a whole.
        piece = self._text.readline(most + 1)
        if not piece:
            raise StopIteration
        self.number += 1
        self.taken += len(piece)
        if self.taken > most:
            # Of a record that has begun on another line more is only asked for inside quotation marks.
            self._pass_over(piece, _Cell.BEGINS if self.taken == len(piece) else _Cell.QUOTED)
            raise _RowTooLong
        return piece

    def _pass_over(self, piece: str, cell: "_Cell") -> None:
        """To the end of the record: what stands on the lines of a quoted cell are no rows."""
        readline, number, quoted = self._text.readline, self.number, _Cell.QUOTED
        while True:
            if cell is not quoted or '"' in piece:
                cell = _behind(piece, cell, self.delimiter)
            ended = piece[-1] in "\n\r"
            if ended and cell is not quoted:
                break
            piece = readline(_CHUNK)
            if not piece:
                break
            number += ended
        self.number = number


class _Cell(Enum):
    """The part of a CSV cell in which a piece of text ends."""

    BEGINS = auto()
    PLAIN = auto()
    QUOTED = auto()
    CLOSED = auto()
    """Behind a quotation mark, which a second one makes a part of the text."""


def _behind(piece: str, cell: _Cell, delimiter: str) -> _Cell:
    """Returns in what part of a CSV cell the text stands after this piece of it."""
    at, end = 0, len(piece)
    while at < end:
        if cell is _Cell.QUOTED:
            if not (at := piece.find('"', at) + 1):
                return cell
            cell = _Cell.CLOSED
        elif cell is not _Cell.PLAIN:
            opens = piece[at] == '"'
            cell, at = (_Cell.QUOTED, at + 1) if opens else (_Cell.PLAIN, at)
        elif at := piece.find(f'{delimiter}"', at) + 1:
            cell = _Cell.BEGINS
        else:
            return _Cell.BEGINS if piece[-1] == delimiter else cell
    return cell


def _csv_rows(source: BinaryIO) -> Iterator[RawRow]:
    # The module's own limit of 131,072 characters would refuse long responses.
    csv.field_size_limit(settings.IMPORT_MAX_ROW_BYTES)
    lines = _CsvLines(source)
    try:
        header = next(lines, "")
        lines.delimiter = _delimiter_of(header)
        # With `strict` a misplaced quote is an error of its row, where csv would otherwise guess.
        reader = csv.reader(chain([header] if header else [], lines), strict=True, delimiter=lines.delimiter)
        columns = next(reader, [])
    except (csv.Error, _RowTooLong) as wrong:
        raise UnreadableFile(f"the CSV header cannot be read: {wrong}") from wrong
    if len(columns) < 2 or len(set(columns)) != len(columns):
        raise UnreadableFile(
            "neither JSON lines, a JSON list, CSV with a header of two or more columns, Parquet, Arrow nor Excel"
        )
    if len(columns) > MOST_COLUMNS:
        raise UnreadableFile(f"the CSV header has {len(columns):,} columns, and at most {MOST_COLUMNS} are read")
    yield from _csv_records(reader, lines, columns)


def _delimiter_of(header: str) -> str:
    """Returns what separates the columns of a header: spreadsheets write semicolons where numbers have commas."""
    outside = "".join(header.split('"')[::2])
    return max(DELIMITERS, key=outside.count)


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


# Parquet, Arrow and Excel ----------------------------------------------------------------------------------


def read_decoded_file(program: Path, file: BinaryIO) -> Iterator[RawRow]:
    """Yields the rows of a file on the disk, without the copy that a stream needs. Raises UnreadableFile."""
    return _decoded_rows(program, decoded_file_lines(program, file))


def _decoded_rows(program: Path, opened: _Decoded) -> Iterator[RawRow]:
    number = 0
    try:
        with opened as decoded:
            for number, line in _lines(_buffered(Metered(decoded))):
                if row := _decoded_row(number, line, from_table=program == EXCEL):
                    yield row
    except Undecodable as broken:
        if not number:
            raise UnreadableFile(f"the file cannot be read: {broken}") from broken
        yield RawRow(number + 1, None, f"the file is damaged here: {broken}")


def _decoded_row(number: int, line: bytes | None, *, from_table: bool) -> RawRow | None:
    """Reads a line of the decoding process: an object, a text that says what is wrong with the row, or null."""
    if line is None:
        return RawRow(number, None, str(_RowTooLong()))
    values = json.loads(line)
    if values is None:
        return None
    if isinstance(values, str):
        return RawRow(number, None, values)
    return RawRow(number, values, size=len(line), from_csv=from_table)
