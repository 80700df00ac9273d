"""The lines of a CSV file as a reader of records takes them, of which one record may only have so many bytes."""

import io
from enum import Enum, auto
from typing import BinaryIO

from django.conf import settings

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
