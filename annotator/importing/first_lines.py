"""Recognises what a text file is by its first lines: JSON lines behind a bad one, the separator, the encoding."""

import csv
import json
import re

DELIMITERS = (",", ";", "\t")
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
        if not quotes % 2 and line.startswith(b"{") and _is_object(line):
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


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def looks_like_windows_1252(head: bytes) -> bool:
    """Returns whether there are bytes beyond ASCII, all of them letters and marks of Windows-1252, none of UTF-8."""
    beyond = re.findall(rb"[\x80-\xff]+(?=.)", head, re.DOTALL)  # the head may end within a character
    return bool(beyond) and all(_MARKS.issuperset(run) and not _is_utf8(run) for run in beyond)


def _is_utf8(run: bytes) -> bool:
    try:
        run.decode()
    except UnicodeDecodeError:
        return False
    return True


def delimiter_of(header: str) -> str:
    """Returns what separates the columns of a header: spreadsheets write semicolons where numbers have commas."""
    outside = "".join(header.split('"')[::2])
    return max(DELIMITERS, key=outside.count)
