"""A program that reads a Parquet or Arrow file, or a workbook's first sheet, and writes its rows as JSON lines.

Its arguments are the most bytes of memory beyond what the library takes, the most rows, the most bytes of a row, and
the most columns. A row that JSON cannot hold becomes a text that says why. Of a sheet, the first row names the columns;
it and empty rows become null, so that lines count as the sheet's rows do. If the file cannot be read, or not to its
end, the program ends with status 1 and the reason on standard error.

The libraries are imported where they are used: each file needs one of them, and memory is limited after it is loaded.
"""

import datetime
import decimal
import json
import os
import resource
import struct
import sys
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

WORKBOOK = b"PK\x03\x04"
BATCH = 8
"""Rows decoded at once. In a dictionary-encoded column each of them may take as many bytes as its longest text."""
LONGEST_FOOTER = 16 << 20
FOOTER_END = struct.Struct("<i4s")
MOST_UNPACKED = 256 << 20
"""Bytes of all parts together. The cells of more would not fit into the memory; what holds no cells only takes time."""


class RefusedFile(Exception):
    """The file is not decoded; the message says why."""


@dataclass(frozen=True)
class Limits:
    """What a file may take; `memory` counts on top of what the interpreter and the library take."""

    memory: int
    rows: int
    row_bytes: int
    columns: int

    def limit_memory(self) -> None:
        """Makes allocations beyond it fail. Does nothing except on Linux, which alone counts them."""
        if sys.platform == "linux":
            fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
            most = int(fields["VmData"].split()[0]) * 1024 + self.memory
            resource.setrlimit(resource.RLIMIT_DATA, (most, most))

    def check_columns(self, count: int, *, of: str = "it") -> None:
        if count > self.columns:
            raise RefusedFile(f"{of} has {count:,} columns, and at most {self.columns} are read")

    def check_rows(self, count: int, *, of: str = "it", more: str = "") -> None:
        if count > self.rows:
            size = f"{of} has {count:,} rows{more}, and an import takes {self.rows:,}"
            raise RefusedFile(f"{size}: split it, or ask the operator to raise IMPORT_MAX_ROWS")

    def line(self, values: Any) -> bytes:
        """Returns the row as JSON. Raises TypeError, ValueError or RecursionError if JSON cannot hold it."""
        text = json.dumps(values, ensure_ascii=False, default=as_json).encode()
        return text if len(text) <= self.row_bytes else self.too_long()

    def too_long(self) -> bytes:
        what_to_do = "shorten it, or ask the operator to raise IMPORT_MAX_ROW_BYTES"
        return json.dumps(f"the row is longer than {self.row_bytes:,} bytes: {what_to_do}").encode()


# Parquet and Arrow -----------------------------------------------------------------------------------------


def columnar_lines(file: Any, magic: bytes, limits: Limits) -> Iterator[bytes]:
    """Yields a line for each row. Raises Refused if the file has too many columns or rows."""
    import pyarrow
    import pyarrow.parquet

    limits.limit_memory()
    try:
        for batch in parquet_batches(file, limits) if magic == b"PAR1" else arrow_batches(file, limits):
            for number in range(batch.num_rows):
                yield columnar_line(batch.slice(number, 1), limits)
    except MemoryError:  # the library has one that is an ArrowException as well
        raise
    except pyarrow.ArrowException as broken:
        raise RefusedFile(str(broken)) from broken


def parquet_batches(file: Any, limits: Limits) -> Iterator[Any]:
    import pyarrow.parquet

    check_footer(file)
    # With pre_buffer the library would read whole chunks of columns ahead, into the little memory that it has.
    parquet = pyarrow.parquet.ParquetFile(file, buffer_size=1 << 16, pre_buffer=False)
    limits.check_columns(parquet.metadata.num_columns)
    limits.check_rows(parquet.metadata.num_rows, more=" or more")
    yield from parquet.iter_batches(batch_size=BATCH, use_threads=False)


def check_footer(file: Any) -> None:
    """Raises Refused if the footer, which pyarrow reads as a whole, is too long. Its length ends the file."""
    end = file.seek(0, os.SEEK_END)
    file.seek(max(end - FOOTER_END.size, 0))
    tail = file.read(FOOTER_END.size)
    file.seek(0)
    if len(tail) == FOOTER_END.size and FOOTER_END.unpack(tail)[0] > LONGEST_FOOTER:
        raise RefusedFile(f"its footer is longer than {LONGEST_FOOTER:,} bytes")


def arrow_batches(file: Any, limits: Limits) -> Iterator[Any]:
    import pyarrow.ipc

    is_file = file.read(6) == b"ARROW1"
    file.seek(0)
    reader = pyarrow.ipc.open_file(file) if is_file else pyarrow.ipc.open_stream(file)
    limits.check_columns(len(reader.schema.names))
    rows = 0
    for batch in map(reader.get_batch, range(reader.num_record_batches)) if is_file else reader:
        rows += batch.num_rows  # as it states: rows of nulls take no byte
        limits.check_rows(rows, more=" or more")
        yield batch


def columnar_line(row: Any, limits: Limits) -> bytes:
    # A slice shares its batch's memory, but `nbytes` counts only what the row itself refers to.
    if row.nbytes > limits.row_bytes:
        return limits.too_long()
    try:
        (values,) = row.to_pylist()
        return limits.line(without_nulls(values))
    except (ValueError, TypeError, RecursionError) as wrong:
        return json.dumps(f"the row cannot be read: {wrong}"[:400]).encode()


def as_json(value: Any) -> Any:
    """Returns times as ISO 8601 texts and decimals as numbers. Raises TypeError for what JSON cannot say, as bytes."""
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, decimal.Decimal):
        return float(value)
    raise TypeError(f"it holds a {type(value).__name__}: not a JSON value")


def without_nulls(value: Any) -> Any:
    """Removes null fields: a Parquet row has every field of the schema, and a missing one is null."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


# Workbooks -------------------------------------------------------------------------------------------------


def sheet_lines(file: Any, limits: Limits) -> Iterator[bytes]:
    """Yields a line for each row of the first sheet. Raises Refused if it is too large or names no columns."""
    import python_calamine

    limits.limit_memory()
    try:
        check_unpacked(file)
        workbook = python_calamine.CalamineWorkbook.from_filelike(file)
    except (python_calamine.CalamineError, zipfile.BadZipFile) as broken:
        error = f"it is a zip archive but no Excel workbook ({broken}): send the files in it one by one"
        raise RefusedFile(error) from broken
    if not workbook.sheet_names:
        raise RefusedFile("the workbook has no sheet")
    try:
        yield from lines_of(workbook.get_sheet_by_index(0), limits)
    except (python_calamine.CalamineError, ValueError) as broken:
        raise RefusedFile(str(broken)) from broken


def check_unpacked(file: Any) -> None:
    """Raises Refused if the parts would be too large, before one of them is unpacked."""
    size = sum(part.file_size for part in zipfile.ZipFile(file).infolist())
    file.seek(0)
    if size > MOST_UNPACKED:
        raise RefusedFile(f"it unpacks to {size:,} bytes, and {MOST_UNPACKED:,} are read: save it as CSV or JSON lines")


def lines_of(sheet: Any, limits: Limits) -> Iterator[bytes]:
    limits.check_columns(sheet.width, of="its first sheet")
    limits.check_rows(sheet.height, of="its first sheet")
    columns: list[str] = []
    for row in sheet.iter_rows():
        if columns:
            values = {name: plain(cell) for name, cell in zip(columns, row, strict=False) if name and cell != ""}
            yield limits.line(values or None)
        else:
            columns = named(row)
            yield b"null"


def named(row: Sequence[Any]) -> list[str]:
    names = [str(cell).strip() for cell in row]
    given = [name for name in names if name]
    if len(given) < 2 or len(set(given)) != len(given):
        raise RefusedFile("the first row of its first sheet must name two or more columns, each differently")
    return names


def plain(cell: Any) -> Any:
    """Returns a value for JSON: whole numbers, which a sheet stores as 3.0, become integers; times become text."""
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53:
        return int(cell)
    return cell if isinstance(cell, str | bool | int | float) else str(cell)


def main() -> None:
    limits, file = Limits(*map(int, sys.argv[1:])), sys.stdin.buffer
    file.seek(0)  # whoever opened it has read its first bytes
    magic = file.read(4)
    file.seek(0)
    try:
        for line in sheet_lines(file, limits) if magic == WORKBOOK else columnar_lines(file, magic, limits):
            sys.stdout.buffer.write(line + b"\n")
        sys.stdout.buffer.flush()
    except MemoryError:
        sys.exit(f"decoding it takes more than {limits.memory:,} bytes of memory: save it as CSV or JSON lines")
    except BrokenPipeError:
        os._exit(1)  # the reader has stopped; a normal exit would try to flush into the broken pipe
    except (RefusedFile, OSError) as broken:
        sys.exit(" ".join(str(broken).split()))


if __name__ == "__main__":
    main()
