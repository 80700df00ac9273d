"""Files in, tasks out: idempotent, whatever is bad is named, whatever is good goes in."""

import csv
import gzip
import io
import json
from collections.abc import Callable
from typing import Any

import pytest
from django.apps import apps
from django.core import serializers
from django.db import connection

from annotator.infrastructure.storage import disk_space
from annotator.models import Annotation, Assignment, AuditEntry, Label, Project, Rating, Task, User
from annotator.stages.importing import ImportResult, UnreadableFile, import_rows, storing
from tests.builders import (
    NOW,
    imported,
    json_lines,
    label_row,
    make_project,
    rate,
    ratings_row,
    task_row,
)
from tests.conftest import Cast

PAIR = [label_row("p", "a", helpfulness=4), label_row("p", "b", helpfulness=1)]
RATED_PAIR = [ratings_row("p", "a", [3, 4, 3]), ratings_row("p", "b", [1, 1, 2])]
PREFERENCE = {
    "split": "train",
    "prompt": "p",
    "response_1": "a",
    "response_2": "b",
    "preference_strength": -2,
    "preference_statement": "Response 1 is better.",
    "preference_elaboration": "It answers.",
    "three_most_similar_preferences": [{"statement": "s", "elaboration": "e", "strength": -2}],
    "all_preferences_unprocessed": [{"strength": strength, "justification": "so"} for strength in (-2, -3, -1, -100)],
}


def everything() -> dict[str, list[dict[str, Any]]]:
    """Every row of every table of ours, but for who did it."""
    models = [model for model in apps.get_app_config("annotator").get_models() if model is not AuditEntry]
    return {model.__name__: serializers.serialize("python", model._default_manager.order_by("pk")) for model in models}


def from_bytes(project: Project, data: bytes, *, dry_run: bool = False) -> ImportResult:
    return import_rows(project, io.BytesIO(data), now=NOW, dry_run=dry_run)


def counted(result: ImportResult) -> tuple[int, int, int]:
    return result.created, result.existing, len(result.rejected)


def labels(project: Project) -> dict[str, int]:
    in_force = Label.objects.in_force().for_project(project.pk)
    return {label.response.text: label.scores["helpfulness"] for label in in_force.select_related("response")}


def as_csv(rows: list[dict[str, Any]]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def as_parquet(rows: list[dict[str, Any]]) -> bytes:
    import pyarrow
    import pyarrow.parquet

    sink = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), sink)
    return sink.getvalue()


def as_lines(rows: list[dict[str, Any]]) -> bytes:
    return json_lines(*rows).read()


SHAPES: dict[str, Callable[[list[dict[str, Any]]], bytes]] = {
    "jsonl": as_lines,
    "gzip": lambda rows: gzip.compress(as_lines(rows)),
    "list": lambda rows: json.dumps(rows, indent=2).encode(),
    "parquet": as_parquet,
}
LAYOUTS: dict[str, list[dict[str, Any]]] = {
    "own": [task_row("one"), task_row("two")],
    "labels": PAIR,
    "ratings": RATED_PAIR,
    "preference": [PREFERENCE],
}


# Shapes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_comes_in_every_format(project: Project, layout: str, shape: str) -> None:
    result = from_bytes(project, SHAPES[shape](LAYOUTS[layout]))
    assert result.rejected == []
    assert result.created == Task.objects.count() == (2 if layout == "own" else 1)


@pytest.mark.parametrize("rows", [PAIR, RATED_PAIR])
def test_rows_with_one_response_come_as_csv_too(project: Project, rows: list[dict[str, Any]]) -> None:
    assert counted(from_bytes(project, as_csv(rows))) == (1, 0, 0)
    assert len(labels(project)) == 2


def test_own_rows_keep_their_fields(project: Project) -> None:
    imported(project, task_row("t", priority=7, metadata={"from": "here"}))
    task = Task.objects.get(external_id="t")
    assert (task.priority, task.metadata, task.state, task.open_slots) == (7, {"from": "here"}, "open", 3)
    assert task.conversation == [{"role": "user", "content": "What is t?"}]
    assert [response.model for response in task.responses.all()] == ["model-0", "model-1"]


def test_the_turns_of_a_prompt_become_messages(project: Project) -> None:
    imported(project, label_row("Hi\n<extra_id_1>Assistant\nHello\n<extra_id_1>User\nBye", "a"))
    assert [turn["role"] for turn in Task.objects.get().conversation] == ["user", "assistant", "user"]


def test_given_labels_become_imported_labels(project: Project) -> None:
    imported(project, *PAIR)
    assert labels(project) == {"a": 4, "b": 1}
    assert set(Label.objects.values_list("source", flat=True)) == {"imported"}


def test_tasks_without_labels_are_served_before_those_that_have_them(project: Project, cast: Cast) -> None:
    imported(project, *PAIR)
    imported(project, task_row("fresh"))
    assert rate(project, cast.alice).annotation.assignment.task.external_id == "fresh"


def test_lists_become_annotations_of_raters_without_names(project: Project) -> None:
    imported(project, *RATED_PAIR)
    raters = User.objects.filter(assignments__isnull=False)
    assert [rater.username for rater in raters.order_by("pk")] == [
        f"imported.{project.pk}.rater-{n}" for n in (1, 2, 3)
    ]
    assert not any(rater.is_active or rater.has_usable_password() for rater in raters)
    assert set(Annotation.objects.values_list("origin", flat=True)) == {"imported"}


def test_lists_are_settled_at_once(project: Project) -> None:
    imported(project, *RATED_PAIR)
    task = Task.objects.get()
    assert (task.state, task.open_slots, task.slots_wanted) == ("complete", 0, 3)
    assert labels(project) == {"a": 3, "b": 1}


def test_two_raters_leave_a_slot_for_a_third(project: Project) -> None:
    imported(project, ratings_row("p", "a", [3, 4]))
    task = Task.objects.get()
    assert (task.state, task.open_slots) == ("open", 1)
    assert labels(project) == {}


def test_five_raters_take_five_slots(project: Project) -> None:
    imported(project, ratings_row("p", "a", [0, 4, 4, 4, 0]))
    task = Task.objects.get()
    assert (task.state, task.slots_wanted, task.consensus.spread_of_all) == ("complete", 5, 4)
    assert labels(project) == {"a": 4}


def test_three_raters_far_apart_open_two_slots(project: Project) -> None:
    imported(project, ratings_row("p", "a", [0, 4, 2]))
    task = Task.objects.get()
    assert (task.state, task.slots_wanted, task.open_slots) == ("open", 5, 2)


def test_preferences_are_kept_and_settled_without_slots(project: Project) -> None:
    imported(project, PREFERENCE)
    task = Task.objects.get()
    assert (task.imported_preference, task.consensus.preference, task.open_slots) == (-2, -2, 3)
    assert set(Annotation.objects.values_list("preference", flat=True)) == {-100, -3, -2, -1}


# The same again --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_same_file_twice_changes_no_row(project: Project, layout: str) -> None:
    data = as_lines(LAYOUTS[layout])
    first = from_bytes(project, data)
    before = everything()
    again = import_rows(project, io.BytesIO(data), now=NOW.replace(year=2027))
    assert counted(again) == (0, first.created, 0)
    assert everything() == before


def test_a_file_interrupted_halfway_can_be_sent_again(project: Project) -> None:
    rows = [task_row(f"t{number}") for number in range(6)]
    imported(project, *rows[:3])
    assert counted(imported(project, *rows)) == (3, 3, 0)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_the_released_files_meet_on_the_same_tasks(project: Project, order: tuple[int, ...]) -> None:
    five = [ratings_row("p", "a", [3, 4, 3, 0, 4]), ratings_row("p", "b", [1, 1, 2, 1, 0])]
    files = [PAIR, five, [PREFERENCE]]
    for number in order:
        assert imported(project, *files[number]).rejected == []
    task = Task.objects.get()
    assert (task.state, task.slots_wanted, task.open_slots, task.imported_preference) == ("complete", 5, 0, -2)
    assert (task.consensus.annotators, task.consensus.preference) == (5, -2)
    assert Label.objects.filter(source="imported").count() == Label.objects.filter(source="consensus").count() == 2


def test_own_rows_and_released_rows_meet_on_the_same_text(project: Project) -> None:
    own = task_row("mine", prompt="p") | {"responses": [{"text": "a"}, {"text": "b"}]}
    imported(project, own)
    assert counted(imported(project, *PAIR)) == (0, 1, 0)
    assert labels(project) == {"a": 4, "b": 1}


def test_imported_ratings_leave_people_their_slots(project: Project, cast: Cast) -> None:
    imported(project, *PAIR)
    held = rate(project, cast.alice, 3).annotation.assignment
    imported(project, *RATED_PAIR)
    held.refresh_from_db()
    assert (held.slot, Assignment.objects.filter(slot__isnull=True).count()) == (1, 0)
    assert Task.objects.get().consensus.annotators == 4
    assert not Assignment.objects.filter(extra=True).exists()


def test_two_projects_do_not_share_tasks(project: Project) -> None:
    imported(project, *PAIR)
    assert counted(imported(make_project("other"), *PAIR)) == (1, 0, 0)


def test_a_second_label_of_a_response_is_refused_and_the_first_stays(project: Project) -> None:
    imported(project, *PAIR)
    result = imported(project, PAIR[0], label_row("p", "b", helpfulness=3))
    assert [row.line for row in result.rejected] == [2]
    assert "imported label with other scores" in result.rejected[0].error
    assert labels(project) == {"a": 4, "b": 1}


def test_a_second_label_within_one_file_is_refused_too(project: Project) -> None:
    result = imported(project, *PAIR, label_row("q", "x"), PAIR[0], label_row("p", "b", helpfulness=3))
    assert [row.line for row in result.rejected] == [5]
    assert labels(project)["b"] == 1


def test_other_ratings_of_the_same_raters_are_refused(project: Project) -> None:
    imported(project, *RATED_PAIR)
    result = imported(project, RATED_PAIR[0], ratings_row("p", "b", [4, 4, 4]))
    assert [(row.line, "first ones are kept" in row.error) for row in result.rejected] == [(1, True)]
    assert Rating.objects.count() == 6


# Ids -------------------------------------------------------------------------------------------------------


def test_an_id_that_comes_twice_with_one_text_is_one_task(project: Project) -> None:
    assert counted(imported(project, task_row("t"), task_row("t"))) == (1, 1, 0)


@pytest.mark.parametrize("between", [0, 600])
def test_an_id_with_another_text_is_refused(project: Project, between: int) -> None:
    """In one batch, and across batches."""
    others = [task_row() for _ in range(between)]
    result = imported(project, task_row("t"), *others, task_row("t", prompt="Another?"))
    assert [row.line for row in result.rejected] == [between + 2]
    assert result.rejected[0].error == "a task with the id 't' exists with another text"
    assert Task.objects.get(external_id="t").conversation[0]["content"] == "What is t?"


def test_an_id_that_looks_like_ours_is_refused_where_it_is_not(project: Project) -> None:
    imported(project, *PAIR)
    made_up = Task.objects.get().external_id
    assert counted(imported(make_project("other"), task_row(made_up), *PAIR)) == (1, 0, 1)


def test_a_row_without_an_id_names_the_oldest_task_of_its_text(project: Project) -> None:
    own = {"messages": [{"role": "user", "content": "p"}], "responses": [{"text": "a"}, {"text": "b"}]}
    imported(project, own | {"id": "first"}, own | {"id": "second"})
    imported(project, *PAIR)
    assert set(Label.objects.values_list("response__task__external_id", flat=True)) == {"first"}


# Bad rows --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (b"{not json}\n", "not JSON"),
        (b'{"prompt": "p"}\n', "the field response is missing"),
        (b'{"prompt": "\xff"}\n', "not UTF-8"),
        (label_row("p", "a", helpfulness=7), "helpfulness is 7"),
        (label_row("p", "a", helpfulness="3"), "helpfulness is '3'"),
        (label_row("p", "a", helpfulness=True), "helpfulness is True"),
        (label_row("p", "a", helpfulness=3.5), "helpfulness is 3.5"),
        (label_row("p", "  "), "response is empty"),
        (label_row("p", "a\x00"), "response has a NUL byte at position 2"),
        (label_row("p\ud800", "a"), "prompt is not UTF-8 at position 2"),
        (label_row("p", ["a"]), "response is ['a']: it must be text"),  # type: ignore[arg-type]
        (b'{"prompt": ' + b"[" * 900 + b"]" * 900 + b', "response": "a"}\n', ""),
        (task_row("x", metadata={"a": json.loads("[" * 900 + "]" * 900)}), "metadata is nested more than 50"),
        (b"[1]\n", "not a JSON object but list"),
    ],
)
def test_a_bad_line_is_named_and_the_good_ones_go_in(project: Project, bad: Any, error: str) -> None:
    result = imported(project, b"\n", task_row("before"), b"\r\n", bad, task_row("after"))
    assert [row.line for row in result.rejected] == [4]
    assert result.rejected[0].error.startswith(error)
    assert set(Task.objects.values_list("external_id", flat=True)) == {"before", "after"}


def test_refusals_come_in_the_order_of_the_file(project: Project) -> None:
    rows = [task_row("t"), task_row("t", prompt="Another?"), b"no\n", task_row("t", prompt="A third?"), b"no\n"]
    assert [row.line for row in imported(project, *rows).rejected] == [2, 3, 4, 5]


def test_a_bad_csv_line_is_named_by_its_line_in_the_file(project: Project) -> None:
    rows = [label_row("p", "two\nlines"), label_row("p", "b", helpfulness=9), label_row("q", "c")]
    result = from_bytes(project, b"\xef\xbb\xbf" + as_csv(rows))
    assert [row.line for row in result.rejected] == [4]
    assert result.created == 2


def test_wrong_bytes_in_a_csv_cell_are_named(project: Project) -> None:
    result = from_bytes(project, as_csv(PAIR).replace(b"p,b,", b"p,b\xff,"))
    assert [(row.line, row.error) for row in result.rejected] == [(3, "response is not UTF-8 at position 2")]


def test_a_truncated_gzip_file_gives_what_it_has(project: Project) -> None:
    rows = [task_row(f"t{number}", prompt=f"{number * 7919:b}") for number in range(1000)]
    whole = gzip.compress(as_lines(rows))
    result = from_bytes(project, whole[: len(whole) - 2000])
    assert result.created == Task.objects.count() > 500
    assert [row.line for row in result.rejected] == [result.created + 1]


def test_a_file_of_no_known_format_is_refused_whole(project: Project) -> None:
    with pytest.raises(UnreadableFile):
        from_bytes(project, b"\x89PNG\r\n")
    assert not Task.objects.exists()


# Dry runs --------------------------------------------------------------------------------------------------


def test_a_dry_run_counts_what_a_real_one_does_and_writes_nothing(project: Project) -> None:
    own = task_row("mine", prompt="p") | {"responses": [{"text": "a"}, {"text": "b"}]}
    many = [task_row() for _ in range(400)]
    clash = [task_row("mine"), label_row("p", "a", helpfulness=0), label_row("p", "b")]
    rows = [own, *many, *PAIR, *clash, *RATED_PAIR, PREFERENCE, b"no\n", many[0]]
    before = everything()
    tried = imported(project, *rows, dry_run=True)
    assert everything() == before
    assert tried == imported(project, *rows)
    assert counted(tried)[0] == 401


def test_a_dry_run_takes_for_new_what_stood_in_an_earlier_batch(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("annotator.stages.importing.batches.BATCH", 1)
    rows = [task_row("mine", prompt="p")] * 2
    assert counted(imported(project, *rows, dry_run=True)) == (2, 0, 0)
    assert counted(imported(project, *rows)) == (1, 1, 0)


@pytest.mark.django_db(transaction=True)
def test_nobody_waits_for_more_than_a_batch_of_a_dry_run(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    imported(project, *(label_row(f"p{number}", "a") for number in range(4)))
    monkeypatch.setattr("annotator.stages.importing.batches.BATCH", 1)
    held: list[bool] = []
    monkeypatch.setattr(disk_space, "require_room", lambda: held.append(connection.in_atomic_block))
    imported(project, *(label_row(f"p{number}", "b") for number in range(4)), dry_run=True)
    assert held == [False] * 4


# What a killed process leaves ------------------------------------------------------------------------------


def test_the_first_tasks_come_with_an_entry_of_the_audit(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed process runs no `finally`: what it would have written at the end is missing here."""
    monkeypatch.setattr("annotator.stages.importing.batches.record", lambda *_, **__: None)
    imported(project, *(task_row(f"t-{number}") for number in range(3)))
    entry = AuditEntry.objects.get(project=project.slug)
    assert (entry.action, entry.subject) == ("import.begun", "a file")
    assert entry.details == {"import": project.imports.get().pk}


def test_a_file_that_makes_nothing_leaves_no_entry(project: Project) -> None:
    assert counted(from_bytes(project, b"{}\n")) == (0, 0, 1)
    assert not AuditEntry.objects.exists()


def test_postgresql_knows_the_tables_once_many_tasks_are_in(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("annotator.stages.importing.batches.COUNTED_FROM", 20)
    imported(project, *(task_row(f"t-{number}") for number in range(20)))
    with connection.cursor() as cursor:
        cursor.execute("SELECT reltuples FROM pg_class WHERE relname = 'annotator_task'")
        assert cursor.fetchone() == (20,)


def test_ids_are_looked_up_one_by_one_in_a_project_of_which_no_statistics_tell(project: Project) -> None:
    other = make_project("other")
    Task.objects.bulk_create(
        Task(project=other, external_id=f"o{n}", conversation=[], content_hash=f"{n}") for n in range(3_000)
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE annotator_task")
        Task.objects.bulk_create(
            Task(project=project, external_id=f"t{n}", conversation=[], content_hash=f"{n}") for n in range(3_000)
        )
        cursor.execute("SET LOCAL enable_seqscan TO off")
        cursor.execute("SET LOCAL enable_bitmapscan TO off")
        for known in (storing._KNOWN, storing._KNOWN_BY_CONTENT):
            cursor.execute(f"EXPLAIN {known.sql}", {"project": project.pk, "names": ["t1", "t2"]})
            plan = "\n".join(line for (line,) in cursor.fetchall())
            assert "= wanted.name)" in next(line for line in plan.splitlines() if "Index Cond" in line), plan
