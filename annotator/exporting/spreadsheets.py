"""CSV that spreadsheets open: a text that they would take for a formula gets an apostrophe in front.

Excel, LibreOffice and Google Sheets evaluate a cell that begins with = + - @, a tab or a carriage return, and a text
is what strangers wrote. Reading such a cell takes the apostrophe off again, so that no text changes on its way.
"""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

# Apostrophes in front of a sign count as well, or a text that has one of its own would come back without it.
_SIGNS = frozenset("'=+-@\t\r")
_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_GUARDED = re.compile(r"'+[=+\-@\t\r]")


def cell_of_text(text: str) -> str:
    """The text as a cell that no spreadsheet evaluates."""
    return f"'{text}" if text[:1] in _SIGNS and _FORMULA.match(text) else text


def text_of_cell(cell: str) -> str:
    """The inverse of `cell_of_text`."""
    return cell[1:] if cell[:1] == "'" and _GUARDED.match(cell) else cell


def csv_lines(rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> Iterator[bytes]:
    """A header and a line per row, texts guarded; numbers stay numbers, negative ones too."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, columns)
    writer.writeheader()
    for row in rows:
        writer.writerow({key: cell_of_text(value) if isinstance(value, str) else value for key, value in row.items()})
        yield buffer.getvalue().encode()
        buffer.seek(0)
        buffer.truncate()
    yield buffer.getvalue().encode()
