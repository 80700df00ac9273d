"""What is read of the people behind Label Studio's and Argilla's ratings: their times, and ratings that do not fit."""

import json
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from annotator.models import Annotation, Project, Task
from annotator.stages.importing import import_rows
from annotator.stages.importing.mappings import read_mapping
from tests.builders import ATTRIBUTES, NOW, imported, json_lines, make_project, task_row
from tests.servers import ROOT

TEXTS = {"prompt": "Name a prime.", "response_1": "7"}
AT = datetime(2021, 3, 4, 5, 6, 7, tzinfo=UTC)
CASE = ROOT.parent / "shared" / "cases" / "label_studio_times.json"


def stars(level: int, *, lacking: str = "", **fields: Any) -> dict[str, Any]:
    keys = [key for key in ATTRIBUTES if key != lacking]
    return {"result": [{"from_name": key, "type": "rating", "value": {"rating": level}} for key in keys], **fields}


def studio(*annotations: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"id": 1, "data": TEXTS, "annotations": list(annotations), **fields}


def argilla(*responses: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"id": "r", "fields": TEXTS, "responses": list(responses), **fields}


def answer(user: str, level: int = 3, **fields: Any) -> dict[str, Any]:
    return {"user_id": user, "values": {key: {"value": level} for key in ATTRIBUTES}, **fields}


# Times -----------------------------------------------------------------------------------------------------


def own(**fields: Any) -> dict[str, Any]:
    row = {"task": "t", "response": "1", "annotator": "r-1", "position": 0, "scores": dict.fromkeys(ATTRIBUTES, 3)}
    return {**row, "counts": True, **fields}


@pytest.mark.parametrize(
    ("row", "seconds"),
    [
        (studio(stars(4, created_at="2021-03-04T05:06:07Z", lead_time=12.5)), 12.5),
        (studio(stars(4, created_at="2021-03-04T06:06:07+01:00", lead_time=1e9)), None),
        (argilla(answer("a", status="submitted", inserted_at="2021-03-04T05:06:07")), None),
        (own(submitted_at="2021-03-04T05:06:07Z", active_seconds=9), 9),
    ],
)
def test_the_times_of_others_are_kept(project: Project, row: dict[str, Any], seconds: float | None) -> None:
    assert imported(project, task_row("t", responses=1), row).rejected == []
    given = Annotation.objects.get()
    assert (given.submitted_at, given.active_seconds) == (AT, seconds)


@pytest.mark.parametrize("time", ["2999-01-01T00:00:00Z", "yesterday", None, 7, "0001-01-01T00:00:00Z"])
def test_a_time_that_cannot_be_is_that_of_the_import(project: Project, time: Any) -> None:
    assert imported(project, studio(stars(4, created_at=time))).rejected == []
    assert Annotation.objects.get().submitted_at == NOW


@pytest.mark.skipif(not CASE.exists(), reason="the cases are not there")
def test_the_case_of_label_studio_s_times(project: Project) -> None:
    with CASE.open("rb") as file:
        assert import_rows(project, file, now=NOW).rejected == []
    given = Annotation.objects.get()
    assert (given.submitted_at, given.active_seconds) == (AT, 12.5)


def test_of_two_annotations_by_one_person_the_later_counts_in_any_order(project: Project) -> None:
    early, late = (stars(n, completed_by=3, created_at=f"2021-03-0{n}T00:00:00Z") for n in (1, 2))
    for place in (project, make_project("other")):
        result = imported(place, studio(*((early, late) if place == project else (late, early))))
        assert (result.ratings_added, result.ratings_left_out, result.rejected_total) == (1, 1, 0)
        assert "a later rating by the same person counts" in result.rejected[0].error
    levels = {rating.scores["verbosity"] for given in Annotation.objects.all() for rating in given.ratings.all()}
    assert levels == {1}


# Ratings that do not fit -----------------------------------------------------------------------------------

ROWS = [
    studio(stars(4, completed_by=1), stars(2, completed_by=2, lacking="verbosity")),
    argilla(answer("a", 9), answer("b")),
]


@pytest.mark.parametrize("row", ROWS)
def test_a_row_goes_in_without_the_rating_that_does_not_fit(project: Project, row: dict[str, Any]) -> None:
    strict = imported(project, row)
    assert (strict.created, strict.rejected_total) == (0, 1)
    result = import_rows(project, json_lines(row), now=NOW, mapping=read_mapping({"fitting_only": True}))
    assert (result.created, result.rejected_total, result.ratings_added, result.ratings_left_out) == (1, 0, 1, 1)
    assert result.rejected[0].error.startswith("a rating does not count: ")


def test_the_command_leaves_out_what_does_not_fit(project: Project, tmp_path: Path) -> None:
    file, out, err = tmp_path / "rows.json", StringIO(), StringIO()
    file.write_text(json.dumps(ROWS))
    call_command("import_tasks", "talk", str(file), fitting_only=True, stdout=out, stderr=err)
    assert "2 ratings added, 2 left out" in out.getvalue()
    assert "without verbosity" in err.getvalue()


def test_questions_stand_for_attributes(project: Project) -> None:
    results = [{"from_name": f"q {key} 1", "type": "rating", "value": {"rating": 4}} for key in ATTRIBUTES]
    mapping = read_mapping({"questions": {f"q {key}": key for key in ATTRIBUTES}})
    row = studio({"completed_by": 1, "result": results})
    assert import_rows(project, json_lines(row), now=NOW, mapping=mapping).ratings_added == 1
    assert Annotation.objects.get().ratings.get().scores == dict.fromkeys(ATTRIBUTES, 3)


@pytest.mark.parametrize("status", ["discarded", "draft", "pending"])
def test_only_submitted_answers_are_ratings(project: Project, status: str) -> None:
    """In both forms of a record; whoever discards one has no values."""
    by_question = {key: [{"value": 3, "user_id": "a", "status": status}] for key in ATTRIBUTES}
    rows = [
        argilla(answer("a", status=status), {"user_id": "c", "values": None, "status": status}, answer("b")),
        {**argilla(), "id": "s", "responses": by_question},
    ]
    result = imported(project, *rows)
    assert (result.rejected, result.ratings_added) == ([], 1)


def test_people_behind_drafts_are_not_stored(project: Project) -> None:
    draft = {"user": "ann@example.org", "result": []}
    imported(project, studio(drafts=[draft], updated_by=[{"user_id": 3}], comment_authors=["ann@example.org"]))
    assert "ann@" not in json.dumps(Task.objects.get().metadata)
