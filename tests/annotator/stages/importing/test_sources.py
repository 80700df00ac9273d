"""Bytes in, numbered raw rows out."""

import gzip
import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from django.conf import LazySettings

from annotator.models import Label, Project
from annotator.stages.importing import import_rows
from annotator.stages.importing.expansion_limits import UnreadableFile
from annotator.stages.importing.sources import read_rows
from annotator.stages.importing.task_rows import RawRow
from tests.builders import ATTRIBUTES, NOW
from tests.workbooks import sheet, workbook

GOOD = b'{"a": 1}\n'


def rows(data: bytes) -> list[RawRow]:
    return list(read_rows(io.BytesIO(data)))


def values(data: bytes) -> list[dict[str, Any] | None]:
    return [row.values for row in rows(data)]


def test_json_lines_keep_their_numbers_over_blank_lines() -> None:
    assert [(row.line, row.values) for row in rows(GOOD + b"\n \r\n" + GOOD)] == [(1, {"a": 1}), (4, {"a": 1})]


def test_a_byte_order_mark_and_windows_line_ends_are_no_content() -> None:
    assert values(b"\xef\xbb\xbf" + b'{"a": 1}\r\n{"a": 2}\r\n') == [{"a": 1}, {"a": 2}]


def test_the_last_line_needs_no_end() -> None:
    assert values(b'{"a": 1}\n{"a": 2}') == [{"a": 1}, {"a": 2}]


def test_an_empty_file_has_no_rows() -> None:
    assert rows(b"") == rows(b"\n \n") == []


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (b'{"a": ', "not JSON"),
        (b"[[1]]", "not a JSON object but list"),
        (b"7", "not a JSON object but int"),
        (b'{"a": "\xff"}', "not UTF-8: byte 0xff at position 8"),
        (b'{"a": ' + b"[" * 100_000, "the row is nested too deeply"),
        (b'{"a": ' + b"7" * 5_000 + b"}", "not JSON"),
    ],
)
def test_a_bad_line_harms_no_other(line: bytes, error: str) -> None:
    first, bad, last = rows(GOOD + line + b"\n" + GOOD)
    assert (first.values, bad.values, last.values) == ({"a": 1}, None, {"a": 1})
    assert (bad.line, last.line) == (2, 3)
    assert bad.error.startswith(error)


@pytest.mark.parametrize("line", [b"garbage", b'"prompt": "a", "response": "b"}', b'["a", "b"]', b"\xff,\xff"])
def test_a_bad_first_line_does_not_hide_that_the_rest_is_json(line: bytes) -> None:
    bad, good = rows(line + b"\n" + GOOD)
    assert (bad.line, bad.values, good.values) == (1, None, {"a": 1})


def test_a_very_long_line_is_reported_and_passed_over(settings: LazySettings) -> None:
    settings.IMPORT_MAX_ROW_BYTES = 100
    long = b'{"a": "' + b"x" * 100_000 + b'"}\n'
    first, bad, last = rows(GOOD + long + GOOD)
    assert (first.line, bad.line, last.line, last.values) == (1, 2, 3, {"a": 1})
    assert bad.error.startswith("the row is longer than 100 bytes")
    assert "IMPORT_MAX_ROW_BYTES" in bad.error


def test_a_json_list_gives_its_elements() -> None:
    text = json.dumps([{"a": "x" * 70_000}, {"a": "]}\u2028"}, 12], indent=1).encode()
    assert [row.line for row in rows(text)] == [1, 2, 3]
    assert [row.error for row in rows(text)] == ["", "", "not a JSON object but int"]


def test_a_json_list_on_one_line_is_a_list() -> None:
    assert values(b'[{"a": 1}, {"a": 2}]\n') == [{"a": 1}, {"a": 2}]


@pytest.mark.parametrize(
    ("rest", "line"),
    [
        (b"", 2),
        (b', {"a"', 2),
        (b', {"a" 2}, {"a": 3}]', 2),
        (b', {"a": 2}] and more', 3),
        (b"," + b"[" * 100_000, 2),
    ],
)
def test_a_broken_json_list_keeps_the_elements_before_the_damage(rest: bytes, line: int) -> None:
    first, *_, last = rows(b'[{"a": 1}' + rest)
    assert first.values == {"a": 1}
    assert (last.line, last.values) == (line, None)
    assert "JSON list" in last.error


def test_wrong_bytes_in_a_json_list_stay_in_their_element() -> None:
    assert values(b'[{"a": "\xff"}, {"a": 2}]') == [{"a": "\udcff"}, {"a": 2}]


def test_gzip_is_opened_whatever_is_inside() -> None:
    assert values(gzip.compress(GOOD)) == values(gzip.compress(b'[{"a": 1}]')) == [{"a": 1}]
    assert values(gzip.compress(b"a,b\n1,2\n")) == [{"a": "1", "b": "2"}]


def test_a_truncated_gzip_file_keeps_the_lines_before_the_cut() -> None:
    whole = gzip.compress(b"".join(b'{"a": %d}\n' % number for number in range(100_000)))
    *good, last = rows(whole[: len(whole) // 2])
    assert len(good) > 1000
    assert (last.line, last.values) == (len(good) + 1, None)
    assert "gzip file is damaged or cut off" in last.error


def test_a_gzip_file_whose_sum_is_wrong_is_reported_after_its_lines() -> None:
    whole = bytearray(gzip.compress(GOOD))
    whole[-8] ^= 1
    assert [(row.line, bool(row.error)) for row in rows(bytes(whole))] == [(1, False), (2, True)]


def test_csv_rows_have_the_line_they_begin_on() -> None:
    read = rows(b'a,b\r\n1,"x\ny"\r\n\r\n2,z\r\n')
    assert [(row.line, row.values) for row in read] == [(2, {"a": "1", "b": "x\ny"}), (5, {"a": "2", "b": "z"})]


def test_csv_keeps_what_only_looks_like_a_line_end() -> None:
    cell = "a\u2028b\x0bc\x0cd\x85e\rf"
    assert values(f'a,b\n1,"{cell}"\n'.encode()) == [{"a": "1", "b": cell}]


@pytest.mark.parametrize(("line", "error"), [(b"1,2,3", "3 cells under"), (b'"1"x,2', "not CSV")])
def test_a_bad_csv_line_harms_no_other(line: bytes, error: str) -> None:
    _, bad, last = rows(b"a,b\n1,2\n" + line + b"\n3,4\n")
    assert (bad.line, bad.values, last.values) == (3, None, {"a": "3", "b": "4"})
    assert bad.error.startswith(error)


def test_an_open_quote_is_reported_where_it_opens() -> None:
    *_, last = rows(b'a,b\n1,2\n3,"never closed\n4,5\n')
    assert (last.line, last.values) == (3, None)


def test_a_long_csv_record_is_passed_over_with_all_its_lines(settings: LazySettings) -> None:
    """What stands on its lines is part of a text, however much it looks like rows."""
    settings.IMPORT_MAX_ROW_BYTES = 100
    long = b'2,"' + b'a""b\r\n3,three\r\n' * 50 + b'"\r\n'
    first, bad, last = rows(b"a,b\r\n1,one\r\n" + long + b"4,four\r\n")
    assert (first.line, bad.line, last.line, last.values) == (2, 3, 104, {"a": "4", "b": "four"})
    assert "IMPORT_MAX_ROW_BYTES" in bad.error


@pytest.mark.parametrize(
    "long",
    [
        b'5" disk,' + b"x" * 200 + b"\n",
        b'"a""",' + b"x" * 100_000 + b'5"\n',
        b'"","' + b'""' * 40_000 + b'"\n',
        b'"' + b"x" * (65_536 + 101 - 2) + b'"",\n' + b"y" * 200 + b'",\n',
        b"x" * (2 * 65_536 + 101 - 1) + b',"\n' + b"y" * 200 + b'"\n',
    ],
    ids=["unquoted", "behind a quoted cell", "only quotation marks", "a pair in two pieces", "a cell in two pieces"],
)
def test_the_next_csv_row_begins_behind_a_long_one(settings: LazySettings, long: bytes) -> None:
    settings.IMPORT_MAX_ROW_BYTES = 100
    bad, last = rows(b"a,b\n" + long + b"1,2\n")
    assert (bad.values, last.line, last.values) == (None, 2 + long.count(b"\n"), {"a": "1", "b": "2"})


def test_a_long_csv_line_without_an_end_is_one_row(settings: LazySettings) -> None:
    settings.IMPORT_MAX_ROW_BYTES = 100
    good, bad = rows(b"a,b\n1,2\n" + b"x" * 200_000)
    assert (good.line, bad.line, bad.values) == (2, 3, None)


def test_csv_may_hold_code_that_looks_like_json() -> None:
    assert values(b'prompt,response\nq,"\n{\n"\n') == [{"prompt": "q", "response": "\n{\n"}]


@pytest.mark.parametrize(
    "data",
    [
        b"one column\nof text\n",
        b"a,a\n1,2\n",
        "a,b\n1,2\n".encode("utf-16"),
        b"\x1f\x8b damaged",
        gzip.compress(GOOD, mtime=0)[:12],
        b"PAR1 is not enough",
        b'"a\n',
    ],
)
def test_a_file_of_no_known_format_is_refused(data: bytes) -> None:
    with pytest.raises(UnreadableFile):
        rows(data)


def parquet(table: list[dict[str, Any]]) -> bytes:
    import pyarrow
    import pyarrow.parquet

    sink = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(table), sink, row_group_size=100, compression="gzip")
    return sink.getvalue()


def test_parquet_rows_have_the_fields_that_are_not_null() -> None:
    table: list[dict[str, Any]] = [{"a": 1, "b": [{"c": "x", "d": None}]}, {"a": None, "b": [{"c": "y", "d": 2}]}]
    read = rows(parquet(table))
    assert [(row.line, row.values) for row in read] == [
        (1, {"a": 1, "b": [{"c": "x"}]}),
        (2, {"b": [{"c": "y", "d": 2}]}),
    ]


def test_times_and_decimals_of_parquet_become_texts_and_numbers() -> None:
    table = [{"at": datetime(2026, 5, 1, 12, tzinfo=UTC), "day": date(2026, 5, 1), "share": Decimal("0.25")}]
    (read,) = rows(parquet(table))
    assert read.values == {"at": "2026-05-01T12:00:00+00:00", "day": "2026-05-01", "share": 0.25}


def test_a_damaged_parquet_file_keeps_the_rows_before_the_damage() -> None:
    data = bytearray(parquet([{"a": f"row {number}"} for number in range(2000)]))
    middle = len(data) // 2
    data[middle : middle + 200] = bytes(200)
    *good, last = rows(bytes(data))
    assert len(good) >= 100
    assert (last.line, last.values) == (len(good) + 1, None)
    assert "the file is damaged here" in last.error


# Arrow and Excel -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("opens", ["new_stream", "new_file"])
def test_arrow_files_are_read_as_datasets_writes_them(opens: str) -> None:
    import pyarrow
    import pyarrow.ipc

    table = pyarrow.Table.from_pylist([{"a": 1, "b": ["x"]}, {"a": None, "b": ["y"]}])
    sink = io.BytesIO()
    with getattr(pyarrow.ipc, opens)(sink, table.schema) as writer:
        writer.write_table(table)
    assert [row.values for row in rows(sink.getvalue())] == [{"a": 1, "b": ["x"]}, {"b": ["y"]}]


def test_excel_rows_count_as_the_sheet_s_do() -> None:
    read = rows(workbook(sheet([["prompt", "n", "", "x"], ["Why?", 3, "lost", 2.5], [], ["Who?", 4]])))
    assert [(row.line, row.values) for row in read] == [
        (2, {"prompt": "Why?", "n": 3, "x": 2.5}),
        (4, {"prompt": "Who?", "n": 4}),
    ]


def test_levels_of_a_sheet_are_numbers(project: Project) -> None:
    columns = ["prompt", "response", *ATTRIBUTES]
    file = io.BytesIO(workbook(sheet([columns, ["p", "r", *[4] * len(ATTRIBUTES)]])))
    assert (import_rows(project, file, now=NOW).rejected, Label.objects.get().scores["helpfulness"]) == ([], 4)


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (workbook(sheet([["prompt", "prompt"], ["a", "b"]])), "must name two or more columns, each differently"),
        (workbook(sheet([["prompt"]])), "must name two or more columns"),
        (workbook("<worksheet"), "the file cannot be read"),
        (b"PK\x03\x04 and so on", "it is a zip archive but no Excel workbook"),
    ],
)
def test_a_workbook_that_cannot_be_read_says_why(data: bytes, error: str) -> None:
    with pytest.raises(UnreadableFile, match=error):
        rows(data)
