"""Small files that stand for far more: each is answered with a limit's name, in little memory."""

import gzip
import io
import json
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as django_settings

from annotator.models import Project, Task, User
from annotator.stages.importing import UnreadableFile, batches, decoders, import_rows
from annotator.stages.importing.task_rows import HOPELESS
from tests.builders import ATTRIBUTES, NOW, imported, json_lines, label_row, ratings_row, task_row
from tests.celery_workers import environment
from tests.workbooks import sheet, workbook

MOST_MEMORY = 300 << 20
MEGABYTE = 1 << 20
SECONDS = 20
"""For what ends at once, on a busy machine."""


FORKING = """
import json, os, sys
import django
from annotator.launch.manage import main
from django.core.checks import run_checks
os.environ["DJANGO_SETTINGS_MODULE"] = "annotator.settings"
django.setup()
run_checks()
import annotator.management.commands.import_tasks
for line in sys.stdin:
    file, output, *options = json.loads(line)
    child = os.fork()
    if not child:
        written = os.open(output, os.O_WRONLY | os.O_CREAT)
        os.dup2(written, 1)
        os.dup2(written, 2)
        sys.argv = ["manage.py", "import_tasks", "talk", file, *options]
        sys.exit(main())
    _, status, used = os.wait4(child, 0)
    print(os.waitstatus_to_exitcode(status), used.ru_maxrss, flush=True)
"""
"""Imports one file after another, each in a process of its own, which has loaded what `manage.py` loads for it.

Starting `manage.py` for each takes longer than most imports. It tells the most memory that the process, or one that the
process has started, has held.
"""


@dataclass(frozen=True)
class Imported:
    """What the importing process answered, and the most memory that it, or a process that it started, has held."""

    status: int
    text: str
    memory: int


@pytest.fixture(scope="module")
def importer(django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, "-c", FORKING]
    variables = environment(tmp_path_factory.mktemp("importer"))
    with subprocess.Popen(
        command, cwd=django_settings.BASE_DIR, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        process.kill()


@pytest.fixture
def import_apart(
    transactional_db: None, project: Project, importer: "subprocess.Popen[str]", tmp_path: Path
) -> Callable[..., Imported]:
    """Imports a file in a process of its own."""

    def run(data: bytes, *options: str) -> Imported:
        file, output = tmp_path / "bomb", tmp_path / "output"
        file.write_bytes(data)
        assert importer.stdin
        assert importer.stdout
        importer.stdin.write(json.dumps([str(file), str(output), *options]) + "\n")
        importer.stdin.flush()
        status, memory = map(int, importer.stdout.readline().split())
        return Imported(status, output.read_text(), memory * 1024)

    return run


Import = Callable[..., Imported]


def zipped(begin: bytes, block: bytes, times: int, end: bytes = b"") -> bytes:
    """gzip of one block many times over: members of a file follow each other."""
    return gzip.compress(begin) + gzip.compress(block) * times + gzip.compress(end)


def parquet(table: Any, **options: Any) -> bytes:
    import pyarrow.parquet

    sink = io.BytesIO()
    pyarrow.parquet.write_table(table, sink, **options)
    return sink.getvalue()


def repeated_text(rows: int, text: str) -> bytes:
    """One text in the dictionary, and every row refers to it."""
    import pyarrow

    texts = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * rows, pyarrow.int32()), [text])
    table = pyarrow.table({"prompt": texts, "response": texts})
    return parquet(table, compression="gzip", dictionary_pagesize_limit=1 << 30)


def long_list(values: int) -> bytes:
    """A single row whose list has many values."""
    import pyarrow

    lists = pyarrow.ListArray.from_arrays([0, values], pyarrow.nulls(values, pyarrow.int64()))
    return parquet(pyarrow.table({"prompt": ["p"], "response": ["r"], "helpfulness": lists}), compression="gzip")


def one_page(size: int) -> bytes:
    """A single text that is one page."""
    import pyarrow

    table = pyarrow.table({"prompt": ["p"], "response": ["x" * size]})
    return parquet(table, compression="gzip", use_dictionary=False)


def empty_rows(rows: int) -> bytes:
    import pyarrow

    nothing = pyarrow.nulls(rows, pyarrow.string())
    return parquet(pyarrow.table({"prompt": nothing, "response": nothing}), row_group_size=rows)


def entities() -> str:
    """Entities of entities, which a careless reader expands to a billion texts."""
    levels = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 10))
    rows = sheet([["prompt", "response"], ["p", "TEXT"]]).replace("TEXT", "&e9;")
    return f'<!DOCTYPE worksheet [<!ENTITY e0 "lol">{levels}]>{rows}'


def many_rows(count: int) -> str:
    return sheet([["prompt", "response"]]).replace(
        "</sheetData>", "<row><c><v>1</v></c></row>" * count + "</sheetData>"
    )


def far_cell() -> str:
    """Two cells, with all the cells of a sheet between them."""
    cells = '<row r="1"><c r="A1"><v>1</v></c></row><row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'
    return sheet([]).replace("<sheetData>", f"<sheetData>{cells}")


def comments(size: int) -> bytes:
    """A workbook whose sheet is comments, which take no memory and hold no cell."""
    begin, end = sheet([["prompt", "response"]]).split("</sheetData>")
    file = io.BytesIO(workbook(sheet([])))
    with zipfile.ZipFile(file) as parts, zipfile.ZipFile(made := io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as archive:
        for name in parts.namelist()[:-1]:
            archive.writestr(name, parts.read(name))
        with archive.open(parts.namelist()[-1], "w") as large:
            large.write(begin.encode())
            for _ in range(size // MEGABYTE):
                large.write(b"<!---->\n" * (MEGABYTE // 8))
            large.write(f"</sheetData>{end}".encode())
    return made.getvalue()


def arrow(batches: int, rows: int) -> bytes:
    """A stream that states so many rows of nothing in each batch."""
    import pyarrow
    import pyarrow.ipc

    batch = pyarrow.record_batch({"prompt": pyarrow.nulls(rows), "response": pyarrow.nulls(rows)})
    sink = io.BytesIO()
    with pyarrow.ipc.new_stream(sink, batch.schema) as stream:
        for _ in range(batches):
            stream.write_batch(batch)
    return sink.getvalue()


def nested(unit: bytes) -> bytes:
    """A row as long as rows may be, whose values take as much memory as JSON can ask for."""
    row = json.dumps(task_row("deep", metadata={"a": "LIST"})).encode().split(b'"LIST"')
    room = django_settings.IMPORT_MAX_ROW_BYTES - len(row[0]) - len(row[1]) - 10
    return row[0] + b"[" + unit * (room // len(unit)) + b"0]" + row[1] + b"\n"


BOMBS: dict[str, tuple[Callable[[], bytes], str]] = {
    "gzip of a gigabyte in a line": (
        lambda: zipped(b'{"prompt": "', b"a" * 10 * MEGABYTE, 100, b'"}\n'),
        "IMPORT_MAX_GZIP_RATIO",
    ),
    "gzip of a gigabyte of blank lines": (lambda: zipped(b"{}\n", b"\n" * MEGABYTE, 1_000), "IMPORT_MAX_ROWS"),
    "a line without an end": (lambda: b'{"prompt": "' + b"a" * 200 * MEGABYTE, "IMPORT_MAX_ROW_BYTES"),
    "a row nested ten thousand deep": (lambda: b'{"prompt":' + b"[" * 10_000 + b"]" * 10_000 + b"}\n", "nested too"),
    "a row of many fields": (
        lambda: json.dumps(task_row("wide") | {f"field {n}": n for n in range(10_001)}).encode(),
        "metadata has more than 10,000 values",
    ),
    "a list with a huge element": (lambda: b'[{"prompt": "' + b"a" * 40 * MEGABYTE + b'"}]', "IMPORT_MAX_ROW_BYTES"),
    "a list with a broken huge element": (lambda: b"[" + b'{"a":[' * 6 * MEGABYTE, "JSON list is broken"),
    "a list of commas": (lambda: b"[" + b"," * 40 * MEGABYTE + b"x]", "JSON list is broken"),
    "a CSV field": (lambda: b'prompt,response\n"' + b"a" * 40 * MEGABYTE, "IMPORT_MAX_ROW_BYTES"),
    "a CSV field of many lines": (lambda: b'prompt,response\n"' + b"a\n" * 6 * MEGABYTE, "IMPORT_MAX_ROW_BYTES"),
    "a CSV row of many fields": (
        lambda: b"prompt,response\n" + (b'"\n' + b"a" * MEGABYTE + b'",') * 40,
        "IMPORT_MAX_ROW_BYTES",
    ),
    "CSV columns": (lambda: b"prompt,response," + b",".join(b"%d" % n for n in range(500_000)), "columns"),
    "Excel columns": (lambda: workbook(sheet([[f"c{n}" for n in range(10_000)]])), "10,000 columns"),
    "Excel of entities": (lambda: workbook(entities()), "unrecognized entity"),
    "Excel of a gigabyte of rows": (lambda: workbook(many_rows(6_000_000)), "bytes of memory"),
    "Excel of a cell far away": (lambda: workbook(far_cell()), "bytes of memory"),
    "Excel of comments": (lambda: comments(260 * MEGABYTE), "it unpacks to"),
    "Arrow of rows of nothing": (lambda: arrow(50, 2_000_000_000), "IMPORT_MAX_ROWS"),
    "lists in metadata": (lambda: nested(b"[0],") * 3, "values"),
    "objects in metadata": (lambda: nested(b'{"":0},') * 3, "values"),
    "raters": (lambda: json.dumps(ratings_row("p", "r", [3] * 200_000)).encode(), "200,000 raters"),
    "Parquet of one text again and again": (lambda: repeated_text(1_000, "x" * 10 * MEGABYTE), "bytes"),
    "Parquet of a list of nulls": (lambda: long_list(30_000_000), "bytes"),
    "Parquet of one page": (lambda: one_page(200 * MEGABYTE), "bytes of memory"),
    "Parquet of rows of nothing": (lambda: empty_rows(10_000_001), "IMPORT_MAX_ROWS"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_in_little_memory(import_apart: Import, name: str) -> None:
    build, error = BOMBS[name]
    done = import_apart(build(), "--dry-run")
    assert done.status == 1
    assert error in done.text, done.text[-2_000:]
    assert len(done.text) < 20_000
    assert done.memory < MOST_MEMORY, f"{done.memory >> 20} MiB"


@pytest.mark.slow
def test_rows_as_large_as_they_may_be_pass_in_little_memory(import_apart: Import) -> None:
    texts = [{"text": "ä" * 999_000} for _ in range(2)]
    rows = b"".join(
        json.dumps(task_row(f"t-{n}") | {"responses": texts}, ensure_ascii=False).encode() + b"\n" for n in range(20)
    )
    done = import_apart(rows)
    assert (done.status, Task.objects.count()) == (0, 20)
    assert done.memory < MOST_MEMORY, f"{done.memory >> 20} MiB"


@pytest.mark.slow
def test_many_raters_of_many_rows_pass_in_little_memory(import_apart: Import) -> None:
    rows = json_lines(*(ratings_row(f"p{n}", "r", [n % 5] * 25) for n in range(100))).getvalue()
    done = import_apart(rows, "--dry-run")
    assert done.status == 0, done.text[-2_000:]
    assert done.memory < MOST_MEMORY, f"{done.memory >> 20} MiB"


@pytest.mark.slow
def test_many_bad_rows_are_counted_and_a_thousand_told(project: Project) -> None:
    result = imported_bytes(project, gzip.compress(json.dumps(task_row()).encode() + b"\n" + b"{}\n" * 200_000))
    assert (len(result.rejected), result.rejected_total) == (1_000, 200_000)
    assert [row.line for row in result.rejected[:3]] == [2, 3, 4]


def test_a_file_without_a_good_row_is_not_read_to_its_end(project: Project) -> None:
    result = imported_bytes(project, gzip.compress(b"{}\n" * (HOPELESS + 5_000)))
    assert (result.created, result.rejected_total) == (0, HOPELESS + 1)


def test_rows_of_nothing_end_soon(project: Project) -> None:
    result = imported_bytes(project, empty_rows(1_900_000))
    assert result.rejected_total == HOPELESS + 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "bomb", [lambda: comments(250 * MEGABYTE), lambda: empty_rows(1_900_000)], ids=["xlsx", "parquet"]
)
def test_a_decoder_works_no_longer_than_the_size_of_its_file_allows(
    project: Project, monkeypatch: pytest.MonkeyPatch, bomb: Callable[[], bytes]
) -> None:
    monkeypatch.setattr(decoders, "SECONDS", 1)
    monkeypatch.setattr(decoders, "BYTES_A_SECOND", 1 << 40)  # a quick machine needs little more than a second
    monkeypatch.setattr(batches, "HOPELESS", 10_000_000)
    monkeypatch.setattr("django.conf.settings.IMPORT_ERRORS_REPORTED", 10_000_000)
    began = time.monotonic()
    try:
        error = imported_bytes(project, bomb()).rejected[-1].error
    except UnreadableFile as refused:
        error = str(refused)
    assert "seconds, which is much for its size" in error
    assert time.monotonic() - began < SECONDS


def imported_bytes(project: Project, data: bytes) -> Any:
    return import_rows(project, io.BytesIO(data), now=NOW)


@pytest.mark.parametrize(
    ("row", "error"),
    [
        (task_row(prompt="x" * 101), "messages[0].content has 101 characters"),
        (task_row(responses=1) | {"responses": [{"text": "x" * 101}]}, "IMPORT_MAX_TEXT"),
        (task_row(metadata={"a": ["x" * 101]}), "IMPORT_MAX_TEXT"),
        (label_row("p", "x" * 101), "response has 101 characters"),
        (task_row(responses=27), "27 responses, and at most 26"),
        (task_row() | {"messages": [{"role": "user", "content": "a"}] * 4}, "4 messages"),
        (label_row("a" + "\n<extra_id_1>User\nb" * 3, "r"), "4 messages"),
        (ratings_row("p", "r", [3] * 26), "26 raters"),
        (
            {"prompt": "p", "response_1": "a", "response_2": "b", "preference_strength": 1}
            | {"all_preferences_unprocessed": [{"strength": 1}] * 26},
            "26 raters",
        ),
    ],
)
def test_a_row_beyond_a_limit_says_which(project: Project, settings: Any, row: dict[str, Any], error: str) -> None:
    settings.IMPORT_MAX_TEXT, settings.IMPORT_MAX_MESSAGES = 100, 3
    (bad,) = imported(project, row).rejected
    assert error in bad.error


def test_no_account_is_made_for_a_row_of_too_many_raters(project: Project) -> None:
    before = User.objects.count()
    imported(project, ratings_row("p", "r", [3] * 26))
    assert User.objects.count() == before


def test_a_file_stops_at_its_limit_and_keeps_what_came_before(project: Project, settings: Any) -> None:
    settings.IMPORT_MAX_FILE_BYTES = 200_000
    result = imported(project, *(task_row(prompt="x" * 1_000) for _ in range(300)))
    assert 100 < result.created < 200
    assert "IMPORT_MAX_FILE_BYTES" in result.rejected[-1].error


def test_a_file_of_more_rows_than_an_import_takes_stops_there(project: Project, settings: Any) -> None:
    settings.IMPORT_MAX_ROWS = 3
    result = imported(project, *(task_row() for _ in range(5)))
    assert (result.created, result.rejected[0].line) == (3, 4)
    assert "IMPORT_MAX_ROWS" in result.rejected[0].error


def test_a_parquet_file_of_strange_values_names_each_row(project: Project) -> None:
    import pyarrow

    data = pyarrow.table({"prompt": [b"\xff", b"p"], "response": ["r", "r"], **{key: [1, 2] for key in ATTRIBUTES}})
    result = imported_bytes(project, parquet(data))
    assert [row.line for row in result.rejected] == [1, 2]
    assert "bytes: not a JSON value" in result.rejected[0].error
