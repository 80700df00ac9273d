"""Preferences without ratings, ties among them, and the metadata of files leave as they came."""

import gzip
import io
import json
import zipfile
from typing import Any

import pyarrow.parquet
import pytest
from django.test import Client
from rest_framework.test import APIClient

from annotator.models import Annotation, Project, Role
from annotator.outputs.exporting import export_previews
from annotator.outputs.exporting.filters import Filters
from annotator.outputs.exporting.layouts import LAYOUTS
from tests.annotator.outputs.exporting.test_rows import exported, rows
from tests.builders import imported, make_member, make_user, rate
from tests.conftest import Cast

pytestmark = pytest.mark.django_db
METADATA = {"source": "forum", "n": 2}


def compared(winner: str, **fields: Any) -> dict[str, Any]:
    return {"prompt": "Who?", "response_a": "She.", "response_b": "He.", "winner": winner, **fields}


@pytest.fixture
def preferred(project: Project) -> Project:
    """Two people compare the responses of a task and rate none: one prefers the first, one says that they tie."""
    project.allow_ties = True
    project.save(update_fields=["allow_ties"])
    imported(project, compared("model_a", judge="ann"), compared("tie", judge="ben"))
    assert set(Annotation.objects.values_list("preference", flat=True)) == {-1, 0}
    return project


@pytest.mark.parametrize("layout", ["annotations", "wide"])
def test_a_preference_without_a_rating_is_a_row(preferred: Project, layout: str) -> None:
    assert sorted(row["preference"] for row in rows(preferred, layout)) == [-1, 0]


def test_such_a_row_names_no_response(preferred: Project) -> None:
    assert {(row["response"], row["position"], str(row["scores"])) for row in rows(preferred, "annotations")} == {
        (None, None, "{}")
    }


def test_label_studio_gets_the_preference_too(preferred: Project) -> None:
    (task,) = rows(preferred, "label_studio")
    chosen = [
        result["value"]["choices"][0]
        for annotation in task["annotations"]
        for result in annotation["result"]
        if result["from_name"] == "preference"
    ]
    assert sorted(chosen) == ["Response 1 is as good as Response 2", "Response 1 is slightly better than Response 2"]


@pytest.mark.parametrize("layout", ["annotations", "wide", "label_studio"])
@pytest.mark.parametrize("format", ["jsonl", "csv", "parquet"])
def test_bare_preferences_are_counted_and_written(preferred: Project, layout: str, format: str) -> None:
    among = list(preferred.tasks.values_list("pk", flat=True))
    assert LAYOUTS[layout].count(preferred, Filters(among=among)) == len(rows(preferred, layout))
    assert exported(preferred, layout, format=format)


# Metadata --------------------------------------------------------------------------------------------------


@pytest.fixture
def described(project: Project) -> Project:
    responses = [{"text": "She.", "metadata": {"judge": 0.5}}, {"text": "He."}]
    row = {"id": "t", "messages": [{"role": "user", "content": "Who?"}], "responses": responses, "metadata": METADATA}
    imported(project, row)
    task = project.tasks.get()
    first = task.responses.order_by("position")[0]
    first.metadata = {"judge": 0.5}
    first.save(update_fields=["metadata"])
    return project


def rated(project: Project, cast: Cast) -> Project:
    rate(project, cast.alice)
    return project


def test_annotations_hold_the_metadata_of_tasks_and_responses(described: Project, cast: Cast) -> None:
    rated(described, cast)
    told = [(row["metadata"], row["response_metadata"]) for row in rows(described, "annotations")]
    assert told == [(METADATA, {"judge": 0.5}), (METADATA, {})]
    (wide,) = rows(described, "wide")
    assert (wide["metadata"], wide["response_1_metadata"]) == (METADATA, {"judge": 0.5})


def test_tables_hold_metadata_as_json(described: Project, cast: Cast) -> None:
    rated(described, cast)
    table = pyarrow.parquet.read_table(io.BytesIO(exported(described, "annotations", format="parquet")))
    assert json.loads(table.column("metadata")[0].as_py()) == METADATA
    assert '"{""n"":2,""source"":""forum""}"' in exported(described, "annotations", format="csv").decode()


def test_reviewers_get_no_metadata_of_responses(described: Project, cast: Cast) -> None:
    rated(described, cast)
    rita = make_user("rita")
    make_member(described, rita, Role.REVIEWER)
    assert all("response_metadata" not in row for row in rows(described, "annotations", by=rita))
    assert all("response_metadata" in row for row in rows(described, "annotations", by=cast.carol))


def test_the_file_set_holds_the_tasks_as_they_can_be_imported(described: Project, cast: Cast) -> None:
    archive = zipfile.ZipFile(io.BytesIO(exported(described, "helpsteer2", format="zip")))
    (line,) = gzip.decompress(archive.read("tasks/tasks.jsonl.gz")).splitlines()
    task = json.loads(line)
    assert task["metadata"] == METADATA
    assert task["responses"][0]["metadata"] == {"judge": 0.5}
    again = imported(described, task)
    assert (again.existing, again.created, again.rejected) == (1, 0, [])


def test_rest_answers_the_metadata_of_responses(described: Project, cast: Cast) -> None:
    carol = APIClient()
    carol.force_authenticate(cast.carol)
    (task,) = carol.get(f"/api/v1/projects/{described.slug}/tasks/").json()["results"]
    assert [response["metadata"] for response in task["responses"]] == [{"judge": 0.5}, {}]


# Days ------------------------------------------------------------------------------------------------------


def test_the_day_of_until_is_part_of_it_at_every_door(described: Project, cast: Cast) -> None:
    rated(described, cast)
    carol = APIClient()
    carol.force_login(cast.carol)
    day = {"since": "2026-01-31", "until": "2026-01-31"}
    page = b"".join(
        carol.get(f"/projects/{described.slug}/data/export/file/", {"layout": "annotations", "format": "jsonl", **day})
    )
    rest = b"".join(carol.get(f"/api/v1/projects/{described.slug}/export/", {"layout": "annotations", **day}))
    assert len(page.splitlines()) == 2
    assert rest == page


# Queries ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_preview_of_a_large_project_needs_few_queries(
    preferred: Project, cast: Cast, layout: str, monkeypatch: pytest.MonkeyPatch, django_assert_max_num_queries: Any
) -> None:
    monkeypatch.setattr(export_previews, "COUNTED_TASKS", 0)
    monkeypatch.setattr(export_previews, "MEASURED", 1)
    carol = Client()
    carol.force_login(cast.carol)
    with django_assert_max_num_queries(20):
        carol.get(f"/projects/{preferred.slug}/data/export/", {"layout": layout, "format": "csv", "state": "open"})
