"""A program that reads JSON lines on standard input and writes them as a Parquet file to standard output.

Its argument is the columns and their types as JSON (annotator/outputs/exporting/columns.py). Times are in UTC, to the
microsecond. What a row lacks is null.
"""

import json
import sys
from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import islice
from typing import Any

import pyarrow
import pyarrow.parquet

GROUP = 2_000
LONGEST_GROUP = 32 << 20
"""Rows, and bytes of their lines, that make a row group; the group lies in memory until it is written."""
CALLS = b"_call"
PLAIN = {
    "text": pyarrow.string(),
    "integer": pyarrow.int64(),
    "number": pyarrow.float64(),
    "boolean": pyarrow.bool_(),
    "json": pyarrow.string(),
    "time": pyarrow.timestamp("us", tz="UTC"),
}


def arrow_type(kind: Any) -> pyarrow.DataType:
    if isinstance(kind, str):
        return PLAIN[kind]
    if isinstance(kind, list):
        return pyarrow.list_(arrow_type(kind[0]))
    return pyarrow.struct([(name, arrow_type(of_name)) for name, of_name in kind.items()])


def has_times(kind: Any) -> bool:
    if isinstance(kind, str):
        return kind == "time"
    return any(map(has_times, kind if isinstance(kind, list) else kind.values()))


def with_times(value: Any, kind: Any) -> Any:
    """Returns the value with the texts of its times as times."""
    if value is None or not has_times(kind):
        return value
    if isinstance(kind, str):
        return datetime.fromisoformat(value)
    if isinstance(kind, list):
        return [with_times(item, kind[0]) for item in value]
    return {name: with_times(item, kind.get(name, "text")) for name, item in value.items()}


def with_calls(value: Any) -> Any:
    """Returns the value with the calls of tools as texts of their messages, for which there is no column."""
    if isinstance(value, list):
        return [with_calls(item) for item in value]
    if not isinstance(value, dict):
        return value
    calls = value.get("tool_calls") or value.get("function_call")
    if calls and "content" in value:
        said = [value["content"]] if value["content"] else []
        return {**value, "content": "\n\n".join([*said, json.dumps(calls, ensure_ascii=False)])}
    return {name: with_calls(item) for name, item in value.items()}


def groups(lines: Iterator[bytes]) -> Iterator[list[bytes]]:
    """Yields the lines of a row group at a time."""
    while some := list(islice(lines, 1)):
        size = len(some[0])
        while len(some) < GROUP and size < LONGEST_GROUP and (line := next(lines, b"")):
            some.append(line)
            size += len(line)
        yield some


def write(lines: Iterable[bytes], columns: dict[str, Any], target: Any) -> None:
    schema = pyarrow.schema([(name, arrow_type(kind)) for name, kind in columns.items()])
    timed = {name: kind for name, kind in columns.items() if has_times(kind)}
    objects = [name for name, kind in columns.items() if kind == "json"]
    with pyarrow.parquet.ParquetWriter(target, schema, compression="zstd") as writer:
        for group in groups(iter(lines)):
            rows = [json.loads(line) for line in group]
            rows = [with_calls(row) if CALLS in line else row for row, line in zip(rows, group, strict=True)]
            for row in rows:
                row.update({name: with_times(row.get(name), kind) for name, kind in timed.items()})
                row.update(
                    {name: json.dumps(row[name], ensure_ascii=False) for name in objects if row.get(name) is not None}
                )
            writer.write_table(pyarrow.Table.from_pylist(rows, schema=schema))


if __name__ == "__main__":
    write(sys.stdin.buffer, json.loads(sys.argv[1]), pyarrow.PythonFile(sys.stdout.buffer, mode="w"))
    sys.stdout.flush()
