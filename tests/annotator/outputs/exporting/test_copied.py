"""What PostgreSQL encodes itself is what Python would have made."""

import json
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any
from unittest import mock

import pytest
from django.db import DEFAULT_DB_ALIAS, DataError, connection, connections
from django.db.models import QuerySet

from annotator.infrastructure.db.planning import by_indexes_without_transaction, by_merging_without_transaction
from annotator.infrastructure.db.statement_timeouts import long_statements
from annotator.models import Project, Task, User
from annotator.outputs.exporting import copied as parts
from annotator.outputs.exporting.copied import copied, moment, prompt_text
from annotator.outputs.exporting.export_rows import export
from annotator.outputs.exporting.file_formats import json_lines
from annotator.stages.importing.conversations import prompt_from_messages
from tests.builders import make_project, make_task
from tests.celery_workers import wait_for

SYSTEM, USER, ASSISTANT = (
    {"role": role, "content": f"{role} says\n<extra_id_1>User\nx"} for role in ("system", "user", "assistant")
)
CONVERSATIONS = [
    [USER],
    [USER, ASSISTANT, USER],
    [SYSTEM, USER],
    [SYSTEM, ASSISTANT, USER],
    [ASSISTANT, USER],
    [USER, USER],
    [SYSTEM, USER, ASSISTANT, USER],
    [USER, SYSTEM, USER],
    [SYSTEM, SYSTEM, USER],
    [{"role": "user", "content": ""}, ASSISTANT, {"role": "user", "content": "a\u2028b\u0085c\\n\x01😀"}],
]


def lines(project: Project, rows: QuerySet[Any, Any], *names: str, **options: Any) -> list[bytes]:
    return list(copied(project, rows, names, task="pk", **options).lines)


@pytest.mark.parametrize("conversation", CONVERSATIONS)
def test_a_prompt_reads_as_it_does_in_python(project: Project, conversation: list[dict[str, str]]) -> None:
    Task.objects.filter(pk=make_task(project).pk).update(conversation=conversation)
    (line,) = lines(project, Task.objects.values_list(prompt_text("conversation")), "prompt")
    assert json.loads(line) == {"prompt": prompt_from_messages(conversation)}


def test_no_name_and_no_text_breaks_a_line(project: Project) -> None:
    name = 'a "quoted" {name} of 100 %'
    Task.objects.filter(pk=make_task(project).pk).update(external_id="one\u2028two\u0085three\r\nfour")
    (line,) = lines(project, Task.objects.values_list("external_id"), name)
    assert json.loads(line) == {name: "one\u2028two\u0085three\r\nfour"}
    assert line.decode().splitlines() == [line.decode().removesuffix("\n")]


def test_rows_come_in_parts_in_their_order(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "FIRST", 1)
    monkeypatch.setattr(parts, "AT_ONCE", 3)
    made = [make_task(project, f"t{number}").external_id for number in range(8)]
    rows = Task.objects.order_by("pk").values_list("external_id")
    assert [json.loads(line)["id"] for line in lines(project, rows, "id")] == made
    assert lines(project, rows.none(), "id") == []
    few = Task.objects.filter(external_id__in=["t1", "t6"]).order_by("pk")
    assert [json.loads(line)["id"] for line in lines(project, few.values_list("external_id"), "id")] == ["t1", "t6"]


def test_who_takes_a_few_rows_reads_few_tasks(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """The parts grow: the second one is not yet as large as those of a whole export."""
    monkeypatch.setattr(parts, "FIRST", 1)
    end = mock.Mock(side_effect=parts._end)
    monkeypatch.setattr(parts, "_end", end)
    for number in range(12):
        make_task(project, f"t{number}")
    rows = Task.objects.order_by("pk").values_list("external_id")
    assert len(lines(project, rows, "id")) == 12
    assert [call.args[2] for call in end.call_args_list][:2] == [1, parts.GROWTH]


def test_the_last_part_ends_with_the_project(project: Project) -> None:
    make_task(project, "own")
    make_task(make_project("other"), "of another project")
    everything = Task.objects.order_by("pk").values_list("external_id")
    assert [json.loads(line)["id"] for line in lines(project, everything, "id")] == ["own"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("spare", [True, False])
def test_parts_of_two_connections_keep_their_order(
    project: Project, monkeypatch: pytest.MonkeyPatch, spare: bool
) -> None:
    monkeypatch.setattr(parts, "FIRST", 1)
    monkeypatch.setattr(parts, "AT_ONCE", 3)
    monkeypatch.setattr(parts, "READ_AHEAD_EVERY", 1)
    if not spare:
        refused = connections.create_connection(DEFAULT_DB_ALIAS)
        refused.settings_dict = {**refused.settings_dict, "HOST": "/nowhere"}
        monkeypatch.setattr(connections, "create_connection", lambda _alias: refused)
    begun = mock.Mock(side_effect=parts._Part)
    monkeypatch.setattr(parts, "_Part", begun)
    made = [make_task(project, f"t{number}").external_id for number in range(20)]
    rows = Task.objects.order_by("pk").values_list("external_id")
    assert [json.loads(line)["id"] for line in lines(project, rows, "id")] == made
    assert len({id(call.args[2]) for call in begun.call_args_list}) == 1 + spare


@pytest.mark.django_db(transaction=True)
def test_a_reader_who_leaves_frees_both_connections(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "FIRST", 3)
    opened = mock.Mock(side_effect=connections.create_connection)
    monkeypatch.setattr(connections, "create_connection", opened)
    for number in range(8):
        make_task(project, f"t{number}")
    rows = copied(project, Task.objects.order_by("pk").values_list("external_id"), ["id"], task="pk").lines
    next(rows)
    rows.close()  # type: ignore[attr-defined]
    assert opened.call_count == 1
    with connection.cursor() as cursor:
        cursor.execute("SHOW enable_seqscan")
        assert cursor.fetchone() == ("on",)
    # PostgreSQL takes a moment to notice that a connection was closed.
    wait_for(lambda: copying() == 0, what="the end of the second connection")


@pytest.fixture
def first(project: Project, monkeypatch: pytest.MonkeyPatch) -> Task:
    """Returns the first of two tasks, each of which is a part."""
    monkeypatch.setattr(parts, "FIRST", 1)
    first = make_task(project, "first")
    make_task(project, "second")
    return first


@pytest.mark.django_db(transaction=True)
def test_rows_do_not_wait_for_a_part_that_takes_long_to_begin(project: Project, first: Task) -> None:
    def select(task: int, _end: int) -> parts.Select:
        return "SELECT to_json(%s) FROM pg_sleep(%s)", [task, 0 if task == first.pk else 2]

    rows = parts.copied_in_parts(project, select)
    began = time.monotonic()
    assert int(next(rows)) == first.pk
    assert time.monotonic() - began < 1
    assert int(next(rows)) > first.pk


@pytest.mark.django_db(transaction=True)
def test_a_reader_who_leaves_is_not_told_of_a_part_that_failed(project: Project, first: Task) -> None:
    def select(task: int, _end: int) -> parts.Select:
        return "SELECT to_json(1 / %s::integer)", [1 if task == first.pk else 0]

    left = parts.copied_in_parts(project, select)
    assert next(left) == b"1\n"
    left.close()  # type: ignore[attr-defined]
    with pytest.raises(DataError, match="division by zero"):
        list(parts.copied_in_parts(project, select))
    assert Task.objects.count() == 2


def copying() -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'COPY%%'"
        )
        return int(cursor.fetchone()[0])


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("planned", "setting"),
    [(by_indexes_without_transaction, "enable_hashjoin"), (by_merging_without_transaction, "enable_nestloop")],
)
def test_another_connection_reads_as_this_one_does(
    planned: Callable[[], AbstractContextManager[None]], setting: str
) -> None:
    settings = ("statement_timeout", "enable_seqscan", "max_parallel_workers_per_gather", "work_mem", setting)
    with connection.cursor() as cursor, long_statements():
        usual = [shown(cursor, name) for name in settings]
        with planned():
            with parts._another_connection() as another:
                assert another is not None
                assert "pool" in connection.settings_dict["OPTIONS"]
                for name in settings:
                    assert [shown(cursor, name), name] == [shown(another.cursor(), name), name]
            assert (shown(cursor, "enable_seqscan"), shown(cursor, setting)) == ("off", "off")
            assert (shown(cursor, "work_mem") == "16MB") == (planned is by_merging_without_transaction)
        assert [shown(cursor, name) for name in settings] == usual


def shown(cursor: Any, setting: str) -> str:
    cursor.execute(f"SHOW {setting}")
    return str(cursor.fetchone()[0])


def test_tasks_without_rows_cost_few_statements(project: Project, django_assert_max_num_queries: Any) -> None:
    row = make_task(project, responses=1)
    Task.objects.bulk_create(
        Task(project=project, external_id=f"b{n}", conversation=row.conversation, content_hash=f"{n}")
        for n in range(2_000)
    )
    last = Task.objects.filter(external_id="b1999").values_list("external_id")
    with django_assert_max_num_queries(20):
        assert [json.loads(line) for line in lines(project, last, "id")] == [{"id": "b1999"}]


def test_what_is_null_is_left_out_of_sparse_rows(project: Project) -> None:
    make_task(project)
    rows = Task.objects.values_list("imported_preference", "external_id")
    assert json.loads(lines(project, rows, "preference", "id")[0])["preference"] is None
    assert "preference" not in json.loads(lines(project, rows, "preference", "id", sparse=True)[0])


def test_times_are_written_as_python_writes_them(project: Project) -> None:
    make_task(project)
    rows = Task.objects.values_list(moment("created_at"))
    (line,) = json_lines([{"at": task.created_at} for task in Task.objects.all()])
    assert json.loads(lines(project, rows, "at")[0]) == json.loads(line)


def test_the_connection_serves_on_after_a_reader_has_left(project: Project) -> None:
    for number in range(60):
        make_task(project, f"t{number}")
    rows = copied(project, Task.objects.values_list("external_id"), ["id"], task="pk").lines
    next(rows)
    rows.close()  # type: ignore[attr-defined]
    assert User.objects.count() >= 0
    assert list(export(project, layout="helpsteer2", format="jsonl")) == []


def test_a_statement_between_two_rows_is_refused_and_does_not_wait_for_ever(project: Project) -> None:
    for name in ("one", "two"):
        make_task(project, name)
    rows = iter(copied(project, Task.objects.order_by("pk").values_list("external_id"), ["id"], task="pk"))
    assert next(rows) == {"id": "one"}
    with pytest.raises(parts.StatementDuringCopy):
        Project.objects.exists()
    assert next(rows) == {"id": "two"}
    assert list(rows) == []
    assert Project.objects.exists()
