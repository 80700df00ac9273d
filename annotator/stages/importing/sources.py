"""Reads text files and tables, plain or gzipped, as numbered raw rows, never whole in memory.

Text files are JSON lines, a JSON list or CSV (csv_rows.py). Parquet, Arrow and Excel are decoded in a process
(decoders.py).
"""

import csv
import gzip
import io
import json
import re
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, suppress
from typing import IO, Any, BinaryIO, cast

from django.conf import settings

from annotator.stages.importing.csv_rows import RowTooLong, csv_rows, delimiter_of
from annotator.stages.importing.decoders import ENCODED, WORKBOOK, Undecodable, decoded_file_lines, decoded_lines
from annotator.stages.importing.expansion_limits import FileTooLarge, Incoming, Metered, UnreadableFile, Unzipped
from annotator.stages.importing.task_rows import RawRow

GZIP = b"\x1f\x8b"
UTF16 = (b"\xff\xfe", b"\xfe\xff")
ENDINGS = (".jsonl", ".json", ".csv", ".tsv", ".parquet", ".arrow", ".xlsx")
"""How the names of files that can be read end, before .gz."""
_CHUNK = 1 << 16
_Decoded = AbstractContextManager[io.BufferedReader]
_LIST_AS_A_LINE = re.compile(rb"\[[^\n]*\][ \t\r]*\n\s*\{")
_SPACE, _SPACE_AND_COMMAS = re.compile(r"[ \t\r\n]*"), re.compile(r"[ \t\r\n,]*")


def read_rows(stream: IO[bytes] | Incoming) -> Generator[RawRow]:
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
        for row in _sniffed(_buffered(Metered(source, incoming.attend))):
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
    if head.startswith(ENCODED):
        return _decoded_rows(head, decoded_lines(source))
    if head[:2] in UTF16:
        raise UnreadableFile("the file is UTF-16: save it as UTF-8")
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text[:1] == b"[" and not _LIST_AS_A_LINE.match(text):
        return _list_rows(source)
    if text[:1] in (b"{", b"[", b""):
        return _json_rows(source)
    if goes_on_as_json_lines(text):
        return _json_rows(source)
    if looks_like_windows_1252(text):
        raise UnreadableFile(
            "the file is not UTF-8 but looks like Windows-1252, as spreadsheets write it: save it as CSV UTF-8"
        )
    return csv_rows(source)


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
            yield RawRow(number, None, str(RowTooLong()))
        elif line.strip():
            yield _json_row(number, line)


# A function of its own, so that no local variable of the generator keeps a decoded row while the next one is read.
def _json_row(number: int, line: bytes) -> RawRow:
    constants: list[str] = []
    try:
        values = json.loads(line.decode("utf-8"), parse_constant=_noted(constants))
    except UnicodeDecodeError as wrong:
        return RawRow(number, None, f"not UTF-8: byte {wrong.object[wrong.start]:#04x} at position {wrong.start + 1}")
    except ValueError as wrong:
        return RawRow(number, None, f"not JSON: {wrong}")
    except RecursionError:
        return RawRow(number, None, "the row is nested too deeply")
    return _object_row(number, values, len(line), not_finite=bool(constants))


def _noted(constants: list[str]) -> Callable[[str], float]:
    """Returns the reader of NaN and the infinities, which also lists them."""

    def read(constant: str) -> float:
        constants.append(constant)
        return float(constant)

    return read


def _object_row(number: int, values: Any, size: int, *, not_finite: bool = False) -> RawRow:
    if isinstance(values, dict):
        return RawRow(number, values, size=size, not_finite=not_finite)
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
            yield _object_row(number, values, size, not_finite=text.had_constants())
    except (ValueError, RecursionError, RowTooLong) as wrong:
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
        self._constants: list[str] = []
        self._decoder = json.JSONDecoder(parse_constant=_noted(self._constants))

    def had_constants(self) -> bool:
        """Returns whether the last element held NaN or an infinity."""
        had = bool(self._constants)
        self._constants.clear()
        return had

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
                value, end = self._decoder.raw_decode(self._buffer, self._at)
            except ValueError:
                if available > most:
                    raise RowTooLong from None
                # Each read decodes from the start again. Doubling the text keeps the whole work linear in its length.
                if not self._read_on(min(max(_CHUNK, available), most + 1 - available)):
                    raise
            else:
                size = end - self._at
                # A number may go on in the part that has not been read yet.
                if end < len(self._buffer) or isinstance(value, dict | list | str) or not self._read_on(_CHUNK):
                    self._at += size
                    return value, size


# Parquet, Arrow and Excel ----------------------------------------------------------------------------------


def read_decoded_file(head: bytes, file: BinaryIO) -> Generator[RawRow]:
    """Yields the rows of a file on the disk, without the copy that a stream needs. Raises UnreadableFile."""
    return _decoded_rows(head, decoded_file_lines(file))


def _decoded_rows(head: bytes, opened: _Decoded) -> Generator[RawRow]:
    number = 0
    try:
        with opened as decoded:
            for number, line in _lines(_buffered(Metered(decoded))):
                if row := _decoded_row(number, line, from_table=head.startswith(WORKBOOK)):
                    yield row
    except Undecodable as broken:
        if not number:
            raise UnreadableFile(f"the file cannot be read: {broken}") from broken
        yield RawRow(number + 1, None, f"the file is damaged here: {broken}")


def _decoded_row(number: int, line: bytes | None, *, from_table: bool) -> RawRow | None:
    """Reads a line of the decoding process: an object, a text that says what is wrong with the row, or null."""
    if line is None:
        return RawRow(number, None, str(RowTooLong()))
    constants: list[str] = []
    values = json.loads(line, parse_constant=_noted(constants))
    if values is None:
        return None
    if isinstance(values, str):
        return RawRow(number, None, values)
    return RawRow(number, values, size=len(line), from_csv=from_table, not_finite=bool(constants))


_MARKS = frozenset("€‚„…ŠŒŽ‘’“”•–—™šœž".encode("cp1252")) | {*range(0xA0, 0xFF)}
"""The bytes that texts of Windows-1252 have beyond ASCII."""


def goes_on_as_json_lines(head: bytes) -> bool:
    """Returns whether good JSON lines follow a first line that is neither JSON nor a header.

    In CSV, lines of JSON stand inside the quoted cells of texts, and below a header.
    """
    first, *lines = head.splitlines(keepends=True)
    if not _is_header(first):
        return any(line.startswith(b"{") for line in lines)
    quotes = first.count(b'"')
    for line in lines:
        if not quotes % 2 and line.startswith(b"{"):
            with suppress(ValueError, RecursionError):
                json.loads(line)
                return True
        quotes += line.count(b'"')
    return False


def _is_header(line: bytes) -> bool:
    text = line.decode("utf-8", errors="replace")
    try:
        columns = next(csv.reader([text], strict=True, delimiter=delimiter_of(text)), [])
    except csv.Error:
        return False
    # The beginning of a cell of several lines is a header, too, as far as one can see.
    return len(columns) > 1 and len(set(columns)) == len(columns)


def looks_like_windows_1252(head: bytes) -> bool:
    """Returns whether there are bytes beyond ASCII, all of them letters and marks of Windows-1252, none of UTF-8."""
    beyond = re.findall(rb"[\x80-\xff]+(?=.)", head, re.DOTALL)  # the head may end within a character
    return bool(beyond) and all(
        _MARKS.issuperset(run) and run.decode(errors="ignore").encode() != run for run in beyond
    )
