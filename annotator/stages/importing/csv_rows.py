"""Reads CSV as numbered raw rows, each of which may only have so many bytes. The header tells the separator."""

import csv
import io
from collections.abc import Iterator
from enum import Enum, auto
from itertools import chain
from typing import Any, BinaryIO

from django.conf import settings

from annotator.infrastructure.spreadsheets import text_of_cell
from annotator.stages.importing.decoders import MOST_COLUMNS
from annotator.stages.importing.expansion_limits import UnreadableFile
from annotator.stages.importing.task_rows import RawRow

DELIMITERS = (",", ";", "\t")
_CHUNK = 1 << 16


class RowTooLong(Exception):
    """A row exceeds IMPORT_MAX_ROW_BYTES."""

    def __str__(self) -> str:
        return (
            f"the row is longer than {settings.IMPORT_MAX_ROW_BYTES:,} bytes: "
            "shorten it, or ask the operator to raise IMPORT_MAX_ROW_BYTES"
        )


class CsvLines:
    """The lines of a CSV file for csv.reader. Raises RowTooLong when one record takes more than a row may have."""

    def __init__(self, source: BinaryIO) -> None:
        # Undecodable bytes become surrogates, so that a later check can name the one row that has them.
        self._text = io.TextIOWrapper(source, encoding="utf-8-sig", errors="surrogateescape", newline="")
        self.number = 0
        self.taken = 0
        self.delimiter = ","

    def __iter__(self) -> "CsvLines":
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
            raise RowTooLong
        return piece

    def _pass_over(self, piece: str, cell: "_Cell") -> None:
        """Skips to the end of the record. Line breaks inside a quoted cell do not start a new row."""
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


def csv_rows(source: BinaryIO) -> Iterator[RawRow]:
    # The module's own limit of 131,072 characters would refuse long responses.
    csv.field_size_limit(settings.IMPORT_MAX_ROW_BYTES)
    lines = CsvLines(source)
    try:
        header = next(lines, "")
        lines.delimiter = delimiter_of(header)
        # With `strict` a misplaced quote is an error of its row, where csv would otherwise guess.
        reader = csv.reader(chain([header] if header else [], lines), strict=True, delimiter=lines.delimiter)
        columns = next(reader, [])
    except (csv.Error, RowTooLong) as wrong:
        raise UnreadableFile(f"the CSV header cannot be read: {wrong}") from wrong
    if len(columns) < 2:
        raise UnreadableFile(
            "neither JSON lines, a JSON list, CSV with a header of two or more columns, Parquet, Arrow nor Excel"
        )
    if len(columns) > MOST_COLUMNS:
        raise UnreadableFile(f"the CSV header has {len(columns):,} columns, and at most {MOST_COLUMNS} are read")
    # After the number of columns: looking for each of a million among all takes hours.
    if repeated := sorted({repr(column[:40]) for column in columns if columns.count(column) > 1}):
        names = ", ".join(repeated[:5])
        raise UnreadableFile(f"the CSV header names {names} more than once: rename one of the columns")
    yield from _csv_records(reader, lines, columns)


def _csv_records(reader: Any, lines: CsvLines, columns: list[str]) -> Iterator[RawRow]:
    while True:
        line, lines.taken = lines.number + 1, 0
        try:
            cells = next(reader)
        except StopIteration:
            return
        except (csv.Error, RowTooLong) as wrong:
            yield RawRow(line, None, f"not CSV: {wrong}" if isinstance(wrong, csv.Error) else str(wrong), from_csv=True)
            continue
        if not cells:
            continue
        if len(cells) > len(columns):
            error = f"{len(cells)} cells under {len(columns)} columns"
            yield RawRow(line, None, error, from_csv=True)
        else:
            # Spreadsheets leave out the empty cells at the end of a row.
            cells += [""] * (len(columns) - len(cells))
            values = dict(zip(columns, map(text_of_cell, cells), strict=True))
            yield RawRow(line, values, from_csv=True, size=lines.taken)


def delimiter_of(header: str) -> str:
    """Returns what separates the columns of a header: spreadsheets write semicolons where numbers have commas."""
    outside = "".join(header.split('"')[::2])
    return max(DELIMITERS, key=outside.count)
