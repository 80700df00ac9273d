"""Labels and annotations out, row by row, and back in."""

import csv
import gzip
import io
import json
import tracemalloc
import zipfile
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pyarrow.parquet
import pytest
from django.db import connection

from annotator.infrastructure.spreadsheets import cell_of_text
from annotator.models import Label, Project, Rating, Task
from annotator.models.splits import is_held_out, prompt_hash
from annotator.outputs.exporting.export_rows import NoLabels, UnknownExport, UnknownField, export
from annotator.outputs.exporting.file_formats import FORMATS
from annotator.outputs.exporting.filters import Filters
from annotator.outputs.exporting.layouts import LAYOUTS
from annotator.stages import annotation, assignment
from annotator.stages.annotation import ResponseRating, Submission
from annotator.stages.importing import import_rows
from annotator.stages.review import adjudicate, judge
from tests.builders import (
    ATTRIBUTES,
    NOW,
    claimed,
    imported,
    json_lines,
    label_row,
    make_project,
    make_task,
    make_user,
    pseudonym,
    rate,
    ratings_row,
    submission,
    task_row,
)
from tests.conftest import Cast

ROWS = [format for format in FORMATS if format != "zip"]
LATER = NOW + timedelta(hours=1)
AWKWARD = [
    "two\nlines\r\nand\rmore",
    'a "quoted", word; and, commas',
    "=cmd|' /C calc'!A1",
    "مرحبا \u202eabc\u202c",
    "a\u2028b\u2029c\x85d\x0be\x0cf\x1cg\x1dh\x1ei",
    "  spaces around \t",
    "\ufeffmark",
    "😀 \\n \\u2028 </script>",
    "@sum(1)",
    "[1, 2]",
    "{",
]


def exported(project: Project, layout: str = "helpsteer2", format: str = "jsonl", **options: Any) -> bytes:
    return b"".join(export(project, layout=layout, format=format, **options))


def rows(project: Project, layout: str = "helpsteer2", **options: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in exported(project, layout, **options).split(b"\n") if line]


def cells(project: Project, layout: str = "helpsteer2") -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(exported(project, layout, "csv").decode(), newline="")))


def parquet_rows(file: bytes) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pyarrow.parquet.read_table(io.BytesIO(file)).to_pylist()
    return rows


def labels(project: Project) -> list[tuple[Any, ...]]:
    in_force = Label.objects.in_force().for_project(project.pk).order_by("response__task", "response__position")
    return list(in_force.values_list("response__task__conversation", "response__text", "scores"))


# Layouts ---------------------------------------------------------------------------------------------------


def test_a_labelled_response_is_a_row(project: Project) -> None:
    row = label_row("Hi\n<extra_id_1>Assistant\nHello\n<extra_id_1>User\nBye", "a", helpfulness=1)
    imported(project, row)
    assert rows(project) == [row]
    assert list(rows(project)[0]) == ["prompt", "response", *ATTRIBUTES]


def test_the_responses_of_a_task_stand_together_in_their_order(project: Project) -> None:
    imported(project, *(label_row(prompt, prompt + text) for prompt in "pq" for text in "ab"))
    assert [row["response"] for row in rows(project)] == ["pa", "pb", "qa", "qb"]


def test_unlabelled_dropped_and_withdrawn_tasks_are_left_out(project: Project) -> None:
    make_task(project)
    strict = make_project("strict", max_annotators=3)
    imported(strict, ratings_row("p", "a", [0, 4, 4]), label_row("q", "b"))
    Task.objects.filter(conversation__0__content="q").update(state=Task.State.RETIRED)
    assert rows(project) == rows(strict) == []


def test_disagreements_list_the_ratings_in_one_order(project: Project) -> None:
    row = ratings_row("p", "a", [3, 4, 2], helpfulness=[4, 0, 2], verbosity=[1, 2, 0])
    imported(project, row)
    assert rows(project, "disagreements") == [row]


def test_annotations_carry_ids_as_imported_and_pseudonyms(project: Project, cast: Cast) -> None:
    row = task_row("t-1")
    row["responses"][1]["id"] = "r-b"
    imported(project, row)
    rate(project, cast.alice, [4, 1])
    first, second = rows(project, "annotations")
    assert (first["task"], first["response"], second["response"]) == ("t-1", "1", "r-b")
    assert (first["annotator"], first["revision"], first["submitted_at"]) == (
        pseudonym(cast.alice, project),
        1,
        "2026-01-31T12:00:00Z",
    )
    assert (first["scores"], second["scores"]) == (dict.fromkeys(ATTRIBUTES, 4), dict.fromkeys(ATTRIBUTES, 1))


def test_an_annotation_keeps_all_that_was_answered(project: Project, cast: Cast) -> None:
    task = make_task(project, responses=1)
    level = ResponseRating(
        dict.fromkeys(ATTRIBUTES, 2), ("repetitions",), confidence=1, safe=False, unsafe_category="bias"
    )
    filled = Submission({task.responses.get().pk: level}, justification="because", active_seconds=12.5)
    annotation.submit(claimed(project, cast.bob).pk, filled, now=NOW)
    (row,) = rows(project, "annotations")
    assert (row["checks"], row["confidence"], row["safe"]) == (["repetitions"], 1, False)
    assert (row["unsafe_category"], row["justification"], row["active_seconds"]) == ("bias", "because", 12.5)
    (flat,) = cells(project, "annotations")
    assert (flat["checks"], flat["helpfulness"], flat["safe"]) == ('["repetitions"]', "2", "False")


@pytest.mark.parametrize(
    "layout", [name for name, layout in LAYOUTS.items() if not (layout.for_managers or layout.of_segments)]
)
@pytest.mark.parametrize("format", ROWS)
def test_no_export_names_a_person_or_a_model(project: Project, layout: str, format: str) -> None:
    people = [make_user(f"person-{n}", first_name="Petra", email="petra@example.org") for n in range(3)]
    ranking = [[response.pk] for response in make_task(project, responses=3).responses.all()]
    for person in people:
        rate(project, person, ranking=ranking)
    make_task(project)
    for person in people:
        rate(project, person)
    Task.objects.update(imported_preference=1)
    Rating.objects.update(edit="Answer 0, but better.", evidence=[["helpfulness", 0, 6, ""]])
    file = exported(project, layout, format)
    text = str(parquet_rows(file)) if format == "parquet" else file.decode()
    assert not any(word in text for word in ("person-", "Petra", "example.org", "model-0"))
    assert "Answer 0" in text or pseudonym(people[0], project) in text


def test_only_the_newest_revision_is_exported(project: Project, cast: Cast) -> None:
    task = make_task(project, responses=1)
    held = rate(project, cast.alice, 1).annotation.assignment
    again = Submission({task.responses.get().pk: ResponseRating(dict.fromkeys(ATTRIBUTES, 4))})
    annotation.submit(held.pk, again, now=LATER)
    assert [(row["revision"], row["scores"]["helpfulness"]) for row in rows(project, "annotations")] == [(2, 4)]


def test_what_does_not_count_is_marked_and_left_out_of_disagreements(project: Project, cast: Cast) -> None:
    make_task(project, responses=1)
    held = [rate(project, user, level).annotation.assignment for user, level in ((cast.alice, 1), (cast.bob, 2))]
    judge(held[0].pk, decision="rejected", comment="No.", by=cast.carol, now=NOW)
    judge(held[1].pk, decision="accepted", by=cast.carol, now=NOW)
    exported = [(row["counts"], row["verdict"]) for row in rows(project, "annotations")]
    assert exported == [(False, "rejected"), (True, "accepted")]
    names = ["counts", "verdict", "extra", "ranking", "domain", "language", "feedback", "edit", "edit_summary"]
    names += ["evidence", "metadata", "response_metadata"]
    assert [list(row)[-12:] for row in cells(project, "annotations")] == [names] * 2
    assert [row["helpfulness"] for row in rows(project, "disagreements")] == [[2]]


def test_what_came_when_there_was_no_room_is_marked(cast: Cast) -> None:
    project = make_project("narrow", base_annotators=1, keep=1)
    make_task(project, responses=1)
    held = claimed(project, cast.alice)
    assignment.release(held.pk)
    rate(project, cast.bob)
    annotation.submit(held.pk, submission(held.task), now=LATER)
    exported = [(row["counts"], row["extra"]) for row in rows(project, "annotations")]
    assert exported == [(True, False), (False, True)]
    assert [row["extra"] for row in cells(project, "annotations")] == ["False", "True"]


def test_a_reviewers_labels_are_exported(project: Project, cast: Cast) -> None:
    task = make_task(project, responses=1)
    for user in cast.annotators:
        rate(project, user, 4)
    scores = {response.pk: dict.fromkeys(ATTRIBUTES, 0) for response in task.responses.all()}
    adjudicate(task.pk, scores=scores, reason="slip", by=cast.carol, now=LATER)
    assert [row["helpfulness"] for row in rows(project, filters=Filters(since=LATER))] == [0]


def test_other_projects_stay_where_they_are(project: Project) -> None:
    imported(make_project("other"), label_row("p", "a"), ratings_row("q", "b", [1, 1, 1]))
    assert all(rows(project, layout) == [] for layout in LAYOUTS)


# Filters ---------------------------------------------------------------------------------------------------


def test_since_gives_the_labels_made_at_or_after(project: Project) -> None:
    imported(project, label_row("p", "old"))
    import_rows(project, json_lines(label_row("q", "new")), now=LATER)
    assert [row["response"] for row in rows(project, filters=Filters(since=LATER))] == ["new"]
    assert len(rows(project, filters=Filters(since=NOW))) == 2


def test_since_gives_the_annotations_made_at_or_after(project: Project, cast: Cast) -> None:
    make_task(project, responses=1)
    rate(project, cast.alice)
    rate(project, cast.bob, now=LATER)
    (row,) = rows(project, "annotations", filters=Filters(since=LATER))
    assert row["annotator"] == pseudonym(cast.bob, project)


def test_since_gives_whole_lists_of_responses_with_news(project: Project, cast: Cast) -> None:
    make_task(project, responses=1)
    rate(project, cast.alice, 1)
    imported(project, ratings_row("p", "a", [2, 2]))
    rate(project, cast.bob, 4, now=LATER)
    assert [row["helpfulness"] for row in rows(project, "disagreements", filters=Filters(since=LATER))] == [[1, 4]]


def test_until_ends_before_its_moment(project: Project, cast: Cast) -> None:
    make_task(project, responses=1)
    rate(project, cast.alice, 1)
    imported(project, label_row("p", "old"))
    assert rows(project, filters=Filters(until=NOW)) == rows(project, "annotations", filters=Filters(until=NOW)) == []
    assert len(rows(project, filters=Filters(since=NOW, until=LATER))) == 1
    assert len(rows(project, "annotations", filters=Filters(until=LATER))) == 1


@pytest.mark.parametrize("layout", ["helpsteer2", "disagreements", "annotations"])
def test_tasks_are_chosen_by_state_language_and_import(project: Project, cast: Cast, layout: str) -> None:
    german = make_task(project, "german", responses=1, lang="de")
    for user in cast.annotators:
        rate(project, user, 4)
    make_task(project, "open", responses=1)
    rate(project, cast.alice, 2)
    imported(project, label_row("p", "a"))

    def levels(filters: Filters) -> set[int]:
        scores = [row.get("scores", row)["helpfulness"] for row in rows(project, layout, filters=filters)]
        return {level[0] if isinstance(level, list) else level for level in scores}

    assert levels(Filters(state="complete")) >= {4}
    assert levels(Filters(state="open")).isdisjoint({4})
    assert levels(Filters(language="de")) == levels(Filters(source=german.from_import_id)) == {4}
    assert levels(Filters(language="fr")) == levels(Filters(source=10**15)) == set()
    assert levels(Filters(source=imported_elsewhere())) == set()


def imported_elsewhere() -> int:
    row = make_task(make_project("elsewhere"), responses=1)
    assert row.from_import_id
    return row.from_import_id


# Formats ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", ROWS)
def test_labels_come_back_as_they_went(project: Project, format: str) -> None:
    prompts = [f"{text}\n<extra_id_1>Assistant\n{text}\n<extra_id_1>User\n{text}" for text in AWKWARD]
    pairs = [(prompt, f"{text}{n}", n) for prompt, text in zip(prompts, AWKWARD, strict=True) for n in (0, 3)]
    assert imported(project, *(label_row(p, text, verbosity=n) for p, text, n in pairs)).rejected == []
    copy = make_project("copy")
    back = import_rows(copy, io.BytesIO(exported(project, format=format)), now=NOW)
    assert (back.created, back.rejected) == (len(AWKWARD), [])
    assert labels(copy) == labels(project)


@pytest.mark.parametrize("format", ROWS)
def test_disagreements_come_back_as_they_went(project: Project, format: str) -> None:
    lists = [ratings_row(text, text, [0, 4, n, 3], helpfulness=[4, 3, 0, n]) for n, text in enumerate(AWKWARD[:5])]
    assert imported(project, *lists).rejected == []
    copy = make_project("copy")
    back = import_rows(copy, io.BytesIO(exported(project, "disagreements", format)), now=NOW)
    assert (back.created, back.rejected) == (5, [])
    assert labels(copy) == labels(project)
    assert rows(copy, "disagreements") == rows(project, "disagreements") == lists


def test_the_consensus_of_people_comes_back_as_labels(project: Project, cast: Cast) -> None:
    make_task(project)
    for user, pair in zip(cast.annotators, ([4, 0], [3, 1], [4, 1]), strict=True):
        rate(project, user, pair)
    copy = make_project("copy")
    import_rows(copy, io.BytesIO(exported(project)), now=NOW)
    assert labels(copy) == labels(project)
    assert [label[2]["helpfulness"] for label in labels(copy)] == [4, 1]


def test_no_text_breaks_a_json_line(project: Project) -> None:
    imported(project, *(label_row(text, text) for text in AWKWARD))
    assert len(exported(project).decode().splitlines()) == len(AWKWARD)
    assert [row["response"] for row in rows(project)] == AWKWARD


def test_csv_cells_hold_the_texts_as_they_are_unless_a_spreadsheet_would_compute_them(project: Project) -> None:
    imported(project, *(label_row(text, text) for text in AWKWARD))
    assert [row["response"] for row in cells(project)] == [cell_of_text(text) for text in AWKWARD]


def test_an_empty_project_has_a_csv_header(project: Project) -> None:
    assert exported(project, format="csv") == ",".join(["prompt", "response", *ATTRIBUTES]).encode() + b"\r\n"
    assert exported(project) == b""


@pytest.mark.parametrize(("layout", "format"), [("dpo2", "jsonl"), ("helpsteer2", "xml"), ("", "")])
def test_an_unknown_export_is_refused_before_the_first_byte(project: Project, layout: str, format: str) -> None:
    with pytest.raises(UnknownExport, match="There is no"):
        export(project, layout=layout, format=format)


# Streams ---------------------------------------------------------------------------------------------------


def many(rows: int) -> Iterator[dict[str, Any]]:
    for number in range(rows):
        yield label_row(f"What is {number // 2}?", f"Answer {number}. " * 40)


@pytest.mark.parametrize("format", ["jsonl", "csv"])
def test_the_first_row_leaves_before_the_last_is_read(project: Project, format: str) -> None:
    imported(project, *many(1200))
    tracemalloc.start()
    stream = export(project, layout="helpsteer2", format=format)
    first = next(stream)
    stream.close()  # type: ignore[attr-defined]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert b"Answer 0." in first
    assert peak < 1200 * 40 * len("Answer 0000. ")


@pytest.mark.parametrize("layout", ["helpsteer2", "disagreements", "annotations", "wide"])
def test_the_number_of_queries_does_not_grow_with_the_rows(
    project: Project, layout: str, django_assert_max_num_queries: Any
) -> None:
    imported(project, *(row | ratings_row(row["prompt"], row["response"], [3, 3, 4]) for row in many(40)))
    with django_assert_max_num_queries(8):
        assert len(rows(project, layout)) >= 40
    more = len(rows(project, layout))
    assert more == sum(1 for _ in cells(project, layout))


@pytest.mark.slow
@pytest.mark.parametrize("format", ROWS)
def test_eight_thousand_rows_leave_in_constant_memory(project: Project, format: str) -> None:
    import_rows(project, json_lines(*many(8_000)), now=NOW)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")  # as PostgreSQL does by itself soon after an import
    tracemalloc.start()
    size = sum(len(part) for part in export(project, layout="helpsteer2", format=format))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert size > 4_000_000 or format == "parquet"
    assert peak < 4_000_000


# Parts of rows ---------------------------------------------------------------------------------------------


def test_fields_are_chosen_in_their_order(project: Project) -> None:
    imported(project, label_row("p", "a"))
    (row,) = rows(project, fields=("verbosity", "response"))
    assert list(row) == ["verbosity", "response"]
    header, _ = exported(project, "helpsteer2", "csv", fields=("verbosity", "response")).decode().splitlines()
    assert header == "verbosity,response"


def test_a_field_of_many_columns_is_one_of_them(project: Project, cast: Cast) -> None:
    make_task(project, "t", responses=1)
    rate(project, cast.alice, 2)
    assert rows(project, "annotations", fields=("scores",)) == [{"scores": dict.fromkeys(ATTRIBUTES, 2)}]
    header, cells = exported(project, "annotations", "csv", fields=("task", "scores")).decode().splitlines()
    assert (header, cells) == (",".join(["task", *ATTRIBUTES]), "t,2,2,2,2,2")


def test_an_unknown_field_is_refused_with_those_that_there_are(project: Project) -> None:
    with pytest.raises(UnknownField, match=r"'model'.*prompt, response, helpfulness"):
        export(project, layout="helpsteer2", format="jsonl", fields=("prompt", "model"))


@pytest.mark.parametrize("source", Label.Source)
def test_labels_are_chosen_by_where_they_come_from(project: Project, cast: Cast, source: Label.Source) -> None:
    imported(project, label_row("p", "imported"))
    for name in ("consensus", "adjudicated"):
        task = make_task(project, name, responses=1)
        for user in cast.annotators:
            rate(project, user, 4)
    scores = {response.pk: dict.fromkeys(ATTRIBUTES, 1) for response in task.responses.all()}
    adjudicate(task.pk, scores=scores, reason="slip", by=cast.carol, now=LATER)
    filters = Filters(label_source=source)
    (row,) = rows(project, filters=filters)
    levels = {Label.Source.IMPORTED: 3, Label.Source.CONSENSUS: 4, Label.Source.ADJUDICATED: 1}
    assert row["helpfulness"] == levels[source]
    assert LAYOUTS["helpsteer2"].count(project, filters) == 1


def test_a_layout_without_labels_has_no_source_of_labels(project: Project) -> None:
    with pytest.raises(NoLabels, match="label_source goes with: helpsteer2"):
        export(project, layout="annotations", format="jsonl", filters=Filters(label_source="imported"))


def test_a_json_list_holds_what_json_lines_hold(project: Project) -> None:
    assert json.loads(exported(project, format="json")) == []
    imported(project, label_row("p", "a"), label_row("p", "b"))
    assert json.loads(exported(project, format="json")) == rows(project)


def test_a_zip_holds_helpsteer2_s_set_of_files(project: Project, cast: Cast) -> None:
    imported(project, *(label_row(f"p{number}", "a") for number in range(60)))
    make_task(project, "rated", responses=2)
    rate(project, cast.alice, [1, 2])
    packed = exported(project, format="zip")
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        assert archive.testzip() is None
        files = {name: gzip.decompress(archive.read(name)).splitlines() for name in archive.namelist()}
    assert list(files) == [
        "train.jsonl.gz",
        "validation.jsonl.gz",
        "disagreements/disagreements.jsonl.gz",
        "preference/preference.jsonl.gz",
        "tasks/tasks.jsonl.gz",
    ]
    held_out = [json.loads(line) for line in files["validation.jsonl.gz"]]
    kept = [json.loads(line) for line in files["train.jsonl.gz"]]
    assert 0 < len(held_out) < len(kept)
    assert sorted(row["prompt"] for row in held_out + kept) == sorted(row["prompt"] for row in rows(project))
    hashes = [prompt_hash([{"role": "user", "content": row["prompt"]}]) for row in held_out]
    assert all(is_held_out(one, project.validation_share) for one in hashes)
    assert len(files["disagreements/disagreements.jsonl.gz"]) == 2
    assert exported(project, format="zip") == packed


def test_a_zip_is_of_helpsteer2_alone_and_whole(project: Project) -> None:
    with pytest.raises(UnknownExport, match="layout helpsteer2"):
        export(project, layout="annotations", format="zip")
    with pytest.raises(UnknownField, match="all their fields"):
        export(project, layout="helpsteer2", format="zip", fields=("prompt",))
