"""Writes CSV that spreadsheets can open safely: a text that looks like a formula gets an apostrophe in front.

Excel, LibreOffice and Google Sheets evaluate a cell that begins with = + - @, a tab or a carriage return, and strangers
wrote the texts. Reading such a cell removes the apostrophe again, so that export and import change no text.
"""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

# Apostrophes in front of a sign count as well: a text that has one of its own would otherwise lose it when it is read.
_SIGNS = frozenset("'=+-@\t\r")
_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_GUARDED = re.compile(r"'+[=+\-@\t\r]")


def cell_of_text(text: str) -> str:
    """Returns the text as a cell that no spreadsheet evaluates."""
    return f"'{text}" if text[:1] in _SIGNS and _FORMULA.match(text) else text


def text_of_cell(cell: str) -> str:
    """Returns the text of a cell; the inverse of `cell_of_text`."""
    return cell[1:] if cell[:1] == "'" and _GUARDED.match(cell) else cell


def csv_lines(rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> Iterator[bytes]:
    """Yields a header and a line for each row. Only texts are guarded, so that negative numbers stay numbers."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, columns)
    writer.writeheader()
    for row in rows:
        writer.writerow({key: cell_of_text(value) if isinstance(value, str) else value for key, value in row.items()})
        yield buffer.getvalue().encode()
        # The buffer is emptied after each row, so that an export of any length takes constant memory.
        buffer.seek(0)
        buffer.truncate()
    # Without any rows this is the header.
    yield buffer.getvalue().encode()
