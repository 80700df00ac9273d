"""Rows of any columns become rows of ours: by one mapping, through every door."""

import io
import json
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from django.core.management import CommandError, call_command
from rest_framework.test import APIClient

from annotator.models import (
    Annotation,
    AuditEntry,
    ImportedRater,
    ImportMapping,
    Project,
    Rating,
    Response,
    Task,
)
from annotator.stages.importing import ImportResult, import_rows, kept_mappings
from annotator.stages.importing.field_checks import BadRow
from annotator.stages.importing.mapped_rows import MissingColumn, own_row
from annotator.stages.importing.mappings import BadMapping, guessed, mapping_of_text, read_mapping
from tests.builders import ATTRIBUTES, NOW, json_lines, task_row
from tests.builders import imported as imported_tasks
from tests.conftest import As, Cast
from tests.refusals import refusal

PAIR = {"prompt": "question", "responses": [{"text": "answer_1"}, {"text": "answer_2"}]}
ROW = {"question": "Name a prime.", "answer_1": "7", "answer_2": "8", "topic": "numbers"}
CSV = "uid,question,answer_1,answer_2,topic\nq1,Name a prime.,7,8,numbers\nq2,Name a colour.,red,,art\n"


def row(values: dict[str, Any] | None = None, **mapping: Any) -> dict[str, Any]:
    return own_row(values or ROW, read_mapping({**PAIR, **mapping}))


def imported(project: Project, content: str | bytes, mapping: dict[str, Any], **options: Any) -> Any:
    return import_rows(
        project,
        io.BytesIO(content.encode() if isinstance(content, str) else content),
        now=NOW,
        mapping=read_mapping(mapping),
        **options,
    )


def test_columns_become_a_conversation_with_responses() -> None:
    assert row() == {
        "messages": [{"role": "user", "content": "Name a prime."}],
        "responses": [{"text": "7"}, {"text": "8"}],
        "metadata": {"topic": "numbers"},
    }


def test_other_columns_are_ignored_on_request() -> None:
    assert "metadata" not in row(rest="ignored")


def test_models_come_from_a_column_or_are_the_same_in_every_row() -> None:
    responses = [{"text": "answer_1", "model": "topic"}, {"text": "answer_2", "model_name": "m-2"}]
    assert [made["model"] for made in row(responses=responses)["responses"]] == ["numbers", "m-2"]


def test_messages_are_a_list_or_its_json() -> None:
    turns = [{"role": "user", "content": "Hi"}]
    for value in (turns, json.dumps(turns)):
        made = row({"talk": value, "a": "Hello"}, prompt="", messages="talk", responses=[{"text": "a"}])
        assert made["messages"] == turns


def test_numbers_in_cells_are_read_as_numbers() -> None:
    made = row({**ROW, "n": 7.0, "p": " -3 "}, id="n", priority="p")
    assert (made["id"], made["priority"]) == (7, -3)


def test_an_empty_response_is_an_error_unless_rows_may_have_fewer() -> None:
    short = {**ROW, "answer_2": " "}
    with pytest.raises(BadRow, match="answer_2 is empty") as refused:
        row(short)
    assert refused.value.field == "answer_2"
    assert len(row(short, fewer=True)["responses"]) == 1
    with pytest.raises(BadRow, match="no response has a text: answer_1, answer_2"):
        row({"question": "?"}, fewer=True)


@pytest.mark.parametrize(
    ("mapping", "wrong"),
    [
        ([], "must be an object"),
        ({"prompt": "q"}, "one response at least"),
        ({**PAIR, "prompt": ""}, "a column for the prompt, or one for the messages"),
        ({**PAIR, "messages": "m"}, "or write one prompt for all rows"),
        ({**PAIR, "colour": "x"}, "unknown field 'colour'"),
        ({**PAIR, "rest": "burnt"}, "rest: Write"),
        ({**PAIR, "fewer": 1}, "fewer: Write true or false"),
        ({**PAIR, "id": 7}, "id: Write a column's name"),
        ({**PAIR, "id": "x\0"}, "cannot be stored"),
        ({**PAIR, "responses": [{"text": ""}]}, "responses\\[0\\].text: Choose"),
        ({**PAIR, "responses": [{"text": "a", "model": "m", "model_name": "n"}]}, "not both"),
        ({**PAIR, "responses": [{"text": "a"}] * 27}, "at most 26"),
        ({**PAIR, "responses": ["a"]}, "Write an object"),
    ],
)
def test_a_mapping_that_is_not_right_says_what_to_change(mapping: Any, wrong: str) -> None:
    with pytest.raises(BadMapping, match=wrong):
        read_mapping(mapping)


def test_a_mapping_that_is_no_json_is_refused() -> None:
    for text in ("{", "{" * 10_000, b"\xff"):
        with pytest.raises(BadMapping, match="not JSON"):
            mapping_of_text(text)


def test_what_is_written_is_read_again() -> None:
    mapping = read_mapping({**PAIR, "rest": "ignored", "fewer": True, "language": "lang"})
    assert read_mapping(mapping.as_json()) == mapping


def test_a_file_of_other_columns_is_imported(project: Project) -> None:
    result = imported(project, CSV, {**PAIR, "id": "uid", "fewer": True})
    assert (result.created, result.rejected) == (2, [])
    first, second = Task.objects.order_by("external_id")
    assert (first.external_id, first.metadata) == ("q1", {"topic": "numbers"})
    assert [response.text for response in first.responses.order_by("position")] == ["7", "8"]
    assert second.responses.count() == 1


def test_errors_name_the_column_of_the_file(project: Project) -> None:
    result = imported(project, CSV, PAIR)
    (bad,) = result.rejected
    assert (bad.line, bad.field, bad.error) == (3, "answer_2", "answer_2 is empty: fill it in, or leave the row out")


def test_a_column_that_the_file_lacks_is_named_and_nothing_is_imported(project: Project) -> None:
    with pytest.raises(MissingColumn, match=r"the column 'answers', which the file lacks\. It has 'uid', 'question'"):
        imported(project, CSV, {**PAIR, "responses": [{"text": "answers"}]})
    assert not Task.objects.exists()


def test_a_column_may_come_first_in_a_later_row(project: Project) -> None:
    content = b"".join(json.dumps(values).encode() + b"\n" for values in ({"question": "?", "answer_1": "a"}, ROW))
    assert imported(project, content, {**PAIR, "fewer": True}).created == 2


def test_the_names_of_columns_suggest_a_mapping() -> None:
    columns = ["UID", "question", "answer_1", "model_1", "answer_2", "model_2", "lang"]
    assert guessed(columns) == {
        "prompt": "question",
        "messages": "",
        "responses": [{"text": "answer_1", "model": "model_1"}, {"text": "answer_2", "model": "model_2"}],
        "id": "UID",
        "language": "lang",
        "priority": "",
        "metadata": "",
    }


@pytest.mark.parametrize(
    "columns",
    [
        ["question", "model_a_answer", "model_b_answer", "model", "lang"],
        ["question", "chosen_answer", "rejected_answer", "answerable", "answers_wanted_by"],
        ["question", "Model-A Response", "Model-B Response"],
        ["question", "answer a", "answer b"],
    ],
)
def test_answers_are_found_wherever_a_name_says_so(columns: list[str]) -> None:
    assert [one["text"] for one in guessed(columns)["responses"]][:2] == columns[1:3]


# Kept with the project -------------------------------------------------------------------------------------


def test_a_project_keeps_mappings_by_name(project: Project, cast: Cast) -> None:
    kept_mappings.keep(project, "  our  export ", read_mapping(PAIR), by=cast.carol)
    kept_mappings.keep(project, "our export", read_mapping({**PAIR, "id": "uid"}), by=cast.carol)
    row = ImportMapping.objects.get()
    assert (row.name, row.columns["id"]) == ("our export", "uid")
    assert kept_mappings.mapping_named(project, "our export") == read_mapping(row.columns)
    kept_mappings.delete(row)
    kinds = AuditEntry.objects.order_by("pk").values_list("action", flat=True)
    assert list(kinds) == ["import_mapping.kept", "import_mapping.kept", "import_mapping.deleted"]


def test_a_name_of_a_rater_is_not_kept(project: Project) -> None:
    row = kept_mappings.keep(project, "ours", read_mapping({**PAIR, "rated_by": "ann"}), by=None)
    assert row.columns == read_mapping(PAIR).as_json()
    for nothing in ({"rated_by": "ann"}, {"fitting_only": False}):
        with pytest.raises(BadMapping, match="nothing to keep"):
            kept_mappings.keep(project, "ours", read_mapping(nothing), by=None)


@pytest.mark.parametrize("name", ["", "   ", "x" * 101, "{a}", "a/b", "a\0b", "a\u202eb"])
def test_a_name_that_is_not_right_is_refused(project: Project, name: str) -> None:
    with pytest.raises(BadMapping, match="name: Write"):
        kept_mappings.keep(project, name, read_mapping(PAIR), by=None)


def test_a_project_keeps_so_many_mappings_at_most(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_mappings, "MOST", 1)
    kept_mappings.keep(project, "one", read_mapping(PAIR), by=None)
    kept_mappings.keep(project, "one", read_mapping(PAIR), by=None)
    with refusal("too_many_mappings"):
        kept_mappings.keep(project, "two", read_mapping(PAIR), by=None)


def test_an_unknown_name_lists_the_known_ones(project: Project) -> None:
    kept_mappings.keep(project, "ours", read_mapping(PAIR), by=None)
    with pytest.raises(kept_mappings.UnknownMapping, match="It keeps ours"):
        kept_mappings.mapping_named(project, "theirs")


# Doors -----------------------------------------------------------------------------------------------------


def test_rest_imports_by_a_name_or_by_json(project: Project, cast: Cast, as_user: As) -> None:
    carol: APIClient = as_user(cast.carol)
    address = "/api/v1/projects/talk/import/"
    kept_mappings.keep(project, "ours", read_mapping(PAIR), by=None)
    answer = carol.generic("POST", f"{address}?mapping=ours", CSV, content_type="text/csv")
    assert (answer.status_code, answer.data["created"], answer.data["rejected_total"]) == (200, 1, 1)
    text = json.dumps({**PAIR, "fewer": True})
    query = f"{address}?{urlencode({'mapping': text})}"
    assert carol.generic("POST", query, CSV, content_type="text/csv").data["created"] == 1
    answer = carol.generic("POST", f"{address}?mapping=none", CSV, content_type="text/csv")
    assert (answer.status_code, answer.data["code"]) == (400, "unknown_mapping")


def test_the_command_imports_by_a_file(project: Project, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows, mapping = tmp_path / "rows.csv", tmp_path / "mapping.json"
    rows.write_text(CSV)
    mapping.write_text(json.dumps({**PAIR, "fewer": True}))
    call_command("import_tasks", "talk", str(rows), "--mapping", str(mapping))
    assert "2 tasks created" in capsys.readouterr().out
    mapping.write_text("{}")
    for name, wrong in ((mapping, "one response"), (tmp_path / "none.json", "cannot be read")):
        with pytest.raises(CommandError, match=wrong):
            call_command("import_tasks", "talk", str(rows), "--mapping", str(name))


ONE_PERSON: list[dict[str, Any]] = [
    {"id": "t-1", "label_annotations": {key: {"scale_3": "3"} for key in ATTRIBUTES}},
    *({"item": "t-2", "attribute": key, "value": 3} for key in ATTRIBUTES),
]


@pytest.mark.parametrize("door", ["call", "REST", "command"])
def test_every_door_takes_the_name_of_who_rated_a_file(
    project: Project, cast: Cast, as_user: As, tmp_path: Path, door: str
) -> None:
    imported_tasks(project, task_row("t-1", responses=1), task_row("t-2", responses=1))
    content, mapping = json_lines(*ONE_PERSON).getvalue(), {"rated_by": "ann"}
    if door == "call":
        import_rows(project, io.BytesIO(content), now=NOW, mapping=read_mapping(mapping))
    elif door == "REST":
        query = urlencode({"mapping": json.dumps(mapping)})
        address = f"/api/v1/projects/talk/import/?{query}"
        as_user(cast.carol).generic("POST", address, content.decode(), content_type="application/x-ndjson")
    else:
        for name, data in (("rows.jsonl", content), ("mapping.json", json.dumps(mapping).encode())):
            (tmp_path / name).write_bytes(data)
        call_command("import_tasks", "talk", str(tmp_path / "rows.jsonl"), "--mapping", str(tmp_path / "mapping.json"))
    named = {**ONE_PERSON[0], "id": "t-2", "user_id": "ann"}
    assert imported_tasks(project, named).ratings_added == 0, "the same person has said the same of it"
    assert Annotation.objects.count() == 2
    assert "ann" not in ImportedRater.objects.get().user.username


def test_scores_of_columns_are_those_of_the_person_of_the_file(project: Project) -> None:
    scores = {key: f"{key}_1" for key in ATTRIBUTES}
    row = {**ANSWERS, **{f"{key}_1": 3 for key in ATTRIBUTES}}
    responses = [{"text": "a.0.said", "scores": scores}, {"text": "a.1.said"}]
    assert voted(project, row, responses=responses, rated_by="ann").rejected == []
    assert ImportedRater.objects.get().place.startswith("person-")


# Languages -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("words", "code"), [("de", "de"), ("German", "de"), ("pt-BR", "pt-br")])
def test_a_mapped_language_is_not_metadata_as_well(project: Project, words: str, code: str) -> None:
    assert voted(project, {**ANSWERS, "tongue": words}, language="tongue", rest="ignored").notes == []
    task = Task.objects.get()
    assert (task.language, task.metadata) == (code, {})
    Task.objects.update(metadata={"lang": words})  # as earlier versions stored it
    assert voted(project, {**ANSWERS, "tongue": words}, language="tongue", rest="ignored").notes == []


def test_a_mapped_language_that_is_not_known_is_told_and_kept(project: Project) -> None:
    (note, _) = voted(project, {**ANSWERS, "tongue": "Deutsch"}, language="tongue", rest="ignored").notes
    assert "These languages are not known, so their tasks are of no language: “Deutsch”." in note.text
    assert Task.objects.get().metadata == {"lang": "Deutsch"}


# What people said ------------------------------------------------------------------------------------------

VOTES = {"prompt": "q", "responses": [{"text": "a.0.said"}, {"text": "a.1.said"}]}
ANSWERS = {"q": "Name a prime.", "a": [{"said": "7"}, {"said": "8"}]}


def voted(project: Project, row: dict[str, Any], **mapping: Any) -> ImportResult:
    file = io.BytesIO(json.dumps(row).encode())
    return import_rows(project, file, now=NOW, mapping=read_mapping({**VOTES, **mapping}))


def test_a_name_with_points_reaches_into_a_column(project: Project) -> None:
    assert voted(project, ANSWERS).rejected == []
    assert [response.text for response in Response.objects.order_by("position")] == ["7", "8"]


def test_what_names_reach_of_a_column_is_not_metadata_as_well(project: Project) -> None:
    assert voted(project, ANSWERS).notes == []
    row = {"q": "Name another.", "a": json.dumps([{"said": "11", "by": "us"}, {"said": "12"}, "13"]), "b": None}
    assert voted(project, row).rejected == []
    said = [task.metadata for task in Task.objects.order_by("pk")]
    assert said == [{}, {"a": [{"by": "us"}, "13"], "b": None}]


def test_columns_of_votes_become_those_of_people(project: Project) -> None:
    names = ("annotator1", "annotator2", "annotator3")
    row = ANSWERS | dict(zip(names, (1, 2.0, 0), strict=True))
    result = voted(project, row, votes=list(names))
    assert result.rejected == []
    assert list(Annotation.objects.order_by("preference").values_list("preference", flat=True)) == [-1, 1]
    assert "annotations" in result.noted.kept  # the tie, which the project does not allow
    Project.objects.update(allow_ties=True)
    project.refresh_from_db()
    assert voted(project, {**row, "q": "Name another."}, votes=list(names)).rejected == []
    assert Annotation.objects.filter(preference=0).count() == 1


def test_columns_of_scores_become_ratings_of_the_person(project: Project) -> None:
    scores = {f"{key}_{n}": n + 1 for key in ATTRIBUTES for n in (1, 2)}
    responses = [{"text": f"a.{n - 1}.said", "scores": {key: f"{key}_{n}" for key in ATTRIBUTES}} for n in (1, 2)]
    row = {**ANSWERS, **scores, "who": "ann"}
    assert voted(project, row, responses=responses, person="who").rejected == []
    assert [one.scores["verbosity"] for one in Rating.objects.order_by("response__position")] == [1, 2]
    assert "ann" not in ImportedRater.objects.get().user.username


@pytest.mark.parametrize(
    ("mapping", "error"),
    [
        ({"votes": "x"}, "votes: Write a list"),
        ({"votes": [{"first": "1"}]}, r"votes\[0\]: Write an object"),
        ({"votes": [{"column": "v", "first": "0"}]}, "first, second and tie must differ"),
        ({"votes": ["v"], "responses": [{"text": "a"}]}, "Only tasks of two responses"),
        ({"lowest": 2}, "lowest: Write 0 or 1"),
        ({"responses": [{"text": "a", "scores": ["b"]}]}, r"responses\[0\].scores: Write an object"),
    ],
)
def test_a_mapping_of_judgements_that_is_not_valid_is_refused(mapping: dict[str, Any], error: str) -> None:
    with pytest.raises(BadMapping, match=error):
        read_mapping({**VOTES, **mapping})


@pytest.mark.parametrize(("value", "error"), [(3, "v is 3: the mapping says that it is 1, 2 or 0"), ("A", "v is 'A'")])
def test_a_vote_that_the_mapping_does_not_know_is_refused(project: Project, value: Any, error: str) -> None:
    (refused,) = voted(project, {**ANSWERS, "v": value}, votes=["v"]).rejected
    assert refused.error.startswith(error)


def test_a_mapping_with_judgements_is_read_as_it_was_kept() -> None:
    given = {**VOTES, "votes": [{"column": "v", "tie": "x"}], "person": "who", "lowest": 0}
    given["responses"] = [{"text": "a", "scores": {"h": "h_1"}}, {"text": "b"}]
    mapping = read_mapping(given)
    assert read_mapping(mapping.as_json()) == mapping
