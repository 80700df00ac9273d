"""A program that reads the Parquet or Arrow file on standard input and writes its rows as JSON lines.

Its arguments are the most bytes of memory beyond what the library takes, the most rows, and the most bytes of a row. A
row that JSON cannot hold becomes a text that says why. If the file cannot be read, or not to its end, the program ends
with status 1 and the reason on standard error.
"""

import datetime
import decimal
import json
import os
import resource
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.ipc
import pyarrow.parquet

BATCH = 8
"""Rows decoded at once. In a dictionary-encoded column each of them may take as many bytes as its longest text."""
LONGEST_FOOTER = 16 << 20
MOST_COLUMNS = 200
TAIL = struct.Struct("<i4s")


class Refused(Exception):
    """The file is not decoded; the message says why."""


def limit_memory(more: int) -> None:
    """Makes allocations beyond `more` further bytes fail. Does nothing except on Linux, which alone counts them."""
    if sys.platform == "linux":
        fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
        most = int(fields["VmData"].split()[0]) * 1024 + more
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def check_footer(file: Any) -> None:
    """Raises Refused if the footer, which pyarrow reads as a whole, is too long. Its length ends the file."""
    end = file.seek(0, os.SEEK_END)
    file.seek(max(end - TAIL.size, 0))
    tail = file.read(TAIL.size)
    file.seek(0)
    if len(tail) == TAIL.size and TAIL.unpack(tail)[0] > LONGEST_FOOTER:
        raise Refused(f"its footer is longer than {LONGEST_FOOTER:,} bytes")


def check_columns(count: int) -> None:
    if count > MOST_COLUMNS:
        raise Refused(f"it has {count:,} columns, and at most {MOST_COLUMNS} are read")


def check_rows(count: int, most: int) -> None:
    if count > most:
        size = f"it has {count:,} rows or more, and an import takes {most:,}"
        raise Refused(f"{size}: split it, or ask the operator to raise IMPORT_MAX_ROWS")


def opened(file: Any, most_rows: int) -> pyarrow.parquet.ParquetFile:
    """Opens the file and raises Refused if it has too many columns or rows."""
    check_footer(file)
    # With pre_buffer the library would read whole chunks of columns ahead, into the little memory that it has.
    parquet = pyarrow.parquet.ParquetFile(file, buffer_size=1 << 16, pre_buffer=False)
    check_columns(parquet.metadata.num_columns)
    check_rows(parquet.metadata.num_rows, most_rows)
    return parquet


def batches(file: Any, most_rows: int) -> Iterator[pyarrow.RecordBatch]:
    """Yields the rows in small batches. Raises Refused if the file has too many columns or rows."""
    file.seek(0)  # whoever opened it has read its first bytes
    magic = file.read(6)
    file.seek(0)
    if magic.startswith(b"PAR1"):
        yield from opened(file, most_rows).iter_batches(batch_size=BATCH, use_threads=False)
        return
    reader = pyarrow.ipc.open_file(file) if magic == b"ARROW1" else pyarrow.ipc.open_stream(file)
    check_columns(len(reader.schema.names))
    count = reader.num_record_batches if magic == b"ARROW1" else None
    rows = 0
    for batch in reader if count is None else map(reader.get_batch, range(count)):
        rows += batch.num_rows  # as it states: rows of nulls take no byte
        check_rows(rows, most_rows)
        yield batch


def lines(file: Any, most_rows: int, longest: int) -> Iterator[bytes]:
    for batch in batches(file, most_rows):
        for number in range(batch.num_rows):
            yield line(batch, number, longest) + b"\n"


def line(batch: pyarrow.RecordBatch, number: int, longest: int) -> bytes:
    row = batch.slice(number, 1)
    # A slice shares its batch's memory, but `nbytes` counts only what the row itself refers to.
    if row.nbytes > longest:
        return json.dumps(f"the row is longer than {longest:,} bytes: {RAISE}").encode()
    try:
        (values,) = row.to_pylist()
        text = json.dumps(without_nulls(values), ensure_ascii=False, default=as_json).encode()
    except (ValueError, TypeError, RecursionError) as wrong:
        return json.dumps(f"the row cannot be read: {wrong}"[:400]).encode()
    return text if len(text) <= longest else json.dumps(f"the row is longer than {longest:,} bytes: {RAISE}").encode()


RAISE = "shorten it, or ask the operator to raise IMPORT_MAX_ROW_BYTES"


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


def main() -> None:
    memory, most_rows, longest = map(int, sys.argv[1:])
    limit_memory(memory)
    try:
        for line in lines(sys.stdin.buffer, most_rows, longest):
            sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
    except MemoryError:
        sys.exit(f"decoding it takes more than {memory:,} bytes of memory: write smaller pages, or JSON lines")
    except BrokenPipeError:
        os._exit(1)  # the reader has stopped; a normal exit would try to flush into the broken pipe
    except (Refused, pyarrow.ArrowException, OSError) as broken:
        sys.exit(" ".join(str(broken).split()))


if __name__ == "__main__":
    main()
