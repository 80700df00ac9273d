"""Writes CSV that spreadsheets can open safely: a text that looks like a formula gets an apostrophe in front.

Excel, LibreOffice and Google Sheets evaluate a cell that begins with = + - @, a tab or a carriage return, and strangers
wrote the texts. Reading such a cell removes the apostrophe again, so that export and import change no text.
"""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, repeat
from typing import Any

# Apostrophes in front of a sign count as well: a text that has one of its own would otherwise lose it when it is read.
_SIGNS = frozenset("'=+-@\t\r")
AT_ONCE = 50
"""Rows that are encoded together."""
_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_GUARDED = re.compile(r"'+[=+\-@\t\r]")


def cell_of_text(text: str) -> str:
    """Returns the text as a cell that no spreadsheet evaluates."""
    return f"'{text}" if text[:1] in _SIGNS and _FORMULA.match(text) else text


def text_of_cell(cell: str) -> str:
    """Returns the text of a cell; the inverse of `cell_of_text`."""
    return cell[1:] if cell[:1] == "'" and _GUARDED.match(cell) else cell


def csv_lines(rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> Iterator[bytes]:
    """Yields a header, and the rows some at a time."""
    return csv_of_cells(([row.get(name) for name in columns] for row in rows), columns)


def csv_of_cells(rows: Iterable[Sequence[Any]], columns: Sequence[str]) -> Iterator[bytes]:
    """Yields a header, and rows of a value for each column. Only texts are guarded, so that negative numbers stay
    numbers.
    """
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow(columns)
    waiting = iter(rows)
    # The first row does not wait for others. The buffer is emptied after each part, so that an export of any length
    # takes constant memory.
    for size in chain([1], repeat(AT_ONCE)):
        some = list(islice(waiting, size))
        # Looked at here rather than in `cell_of_text`: a call for each of millions of cells takes longer than the rest.
        writer.writerows(
            [cell_of_text(cell) if isinstance(cell, str) and cell[:1] in _SIGNS else cell for cell in row]
            for row in some
        )
        # Without any rows this is the header.
        if written := buffer.getvalue():
            yield written.encode()
        if len(some) < size:
            return
        buffer.seek(0)
        buffer.truncate()
