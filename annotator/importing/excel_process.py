"""A program that reads the first sheet of the workbook on standard input and writes its rows as JSON lines.

Its arguments are the most bytes of memory beyond what the library takes, the most rows, and the most bytes of a row.
The first row names the columns; it and empty rows become null, so that lines count as the sheet's rows do. If the
workbook cannot be read, the program ends with status 1 and the reason on standard error.
"""

import json
import os
import resource
import sys
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import python_calamine

MOST_COLUMNS = 200
MOST_UNPACKED = 256 << 20
"""Bytes of all parts together. The cells of more would not fit into the memory; what holds no cells only takes time."""
RAISE = "shorten it, or ask the operator to raise IMPORT_MAX_ROW_BYTES"


class Refused(Exception):
    """The workbook is not read; the message says why."""


def limit_memory(more: int) -> None:
    """Makes allocations beyond `more` further bytes fail. Does nothing except on Linux, which alone counts them."""
    if sys.platform == "linux":
        fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
        most = int(fields["VmData"].split()[0]) * 1024 + more
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def first_sheet(file: Any) -> python_calamine.CalamineSheet:
    file.seek(0)  # whoever opened it has read its first bytes
    try:
        check_size(zipfile.ZipFile(file))
        file.seek(0)
        workbook = python_calamine.CalamineWorkbook.from_filelike(file)
    except (python_calamine.CalamineError, zipfile.BadZipFile) as broken:
        error = f"it is a zip archive but no Excel workbook ({broken}): send the files in it one by one"
        raise Refused(error) from broken
    if not workbook.sheet_names:
        raise Refused("the workbook has no sheet")
    return workbook.get_sheet_by_index(0)


def check_size(archive: zipfile.ZipFile) -> None:
    """Raises Refused if the parts would be too large, before one of them is unpacked."""
    size = sum(part.file_size for part in archive.infolist())
    if size > MOST_UNPACKED:
        raise Refused(f"it unpacks to {size:,} bytes, and {MOST_UNPACKED:,} are read: save it as CSV or JSON lines")


def lines(sheet: python_calamine.CalamineSheet, most_rows: int, longest: int) -> Iterator[bytes]:
    height, width = sheet.height, sheet.width
    if width > MOST_COLUMNS:
        raise Refused(f"its first sheet has {width:,} columns, and at most {MOST_COLUMNS} are read")
    if height > most_rows:
        size = f"its first sheet has {height:,} rows, and an import takes {most_rows:,}"
        raise Refused(f"{size}: split it, or ask the operator to raise IMPORT_MAX_ROWS")
    columns: list[str] = []
    for row in sheet.iter_rows():
        if columns:
            yield line(columns, row, longest) + b"\n"
        else:
            columns = named(row)
            yield b"null\n"


def named(row: Sequence[Any]) -> list[str]:
    names = [str(cell).strip() for cell in row]
    given = [name for name in names if name]
    if len(given) < 2 or len(set(given)) != len(given):
        raise Refused("the first row of its first sheet must name two or more columns, each differently")
    return names


def line(columns: Sequence[str], row: Sequence[Any], longest: int) -> bytes:
    values = {name: plain(cell) for name, cell in zip(columns, row, strict=False) if name and cell != ""}
    text = json.dumps(values, ensure_ascii=False).encode() if values else b"null"
    return text if len(text) <= longest else json.dumps(f"the row is longer than {longest:,} bytes: {RAISE}").encode()


def plain(cell: Any) -> Any:
    """Returns a value for JSON: whole numbers, which a sheet stores as 3.0, become integers; times become text."""
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53:
        return int(cell)
    return cell if isinstance(cell, str | bool | int | float) else str(cell)


def main() -> None:
    memory, most_rows, longest = map(int, sys.argv[1:])
    limit_memory(memory)
    try:
        for line in lines(first_sheet(sys.stdin.buffer), most_rows, longest):
            sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
    except MemoryError:
        sys.exit(f"decoding it takes more than {memory:,} bytes of memory: save it as CSV or JSON lines")
    except BrokenPipeError:
        os._exit(1)  # the reader has stopped; a normal exit would try to flush into the broken pipe
    except (Refused, python_calamine.CalamineError, OSError, ValueError) as broken:
        sys.exit(" ".join(str(broken).split()))


if __name__ == "__main__":
    main()
