"""Imports in the background, over REST."""

import json
from typing import Any
from urllib.parse import urlencode

import pytest
from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile
from rest_framework.test import APIClient

from annotator.models import ImportJob, Project, Task
from annotator.stages.importing import jobs
from tests.builders import json_lines, make_member, make_project, task_row
from tests.conftest import Cast

pytestmark = pytest.mark.usefixtures("workers")

JOBS = "/api/v1/projects/talk/import-jobs/"
MAPPINGS = "/api/v1/projects/talk/import-mappings/"
CSV = "question,answer_1,answer_2\nName a prime.,7,8\nName a colour.,red,\n"
PAIR = {"prompt": "question", "responses": [{"text": "answer_1"}, {"text": "answer_2"}]}


def sent(carol: APIClient, body: str = CSV, **query: str) -> Any:
    return carol.generic("POST", f"{JOBS}?{urlencode(query)}", body, content_type="text/csv")


def test_a_body_is_imported_in_the_background(project: Project, carol: APIClient) -> None:
    answer = sent(carol, json_lines(task_row("a"), {"bad": 1}).getvalue().decode())
    assert (answer.status_code, answer.json()["state"]) == (202, "waiting")
    jobs.run_waiting()
    job = carol.get(answer.headers["Location"]).json()
    assert (job["state"], job["created"], job["rejected"], job["by"]) == ("done", 1, 1, "carol")
    assert job["import_id"] == carol.get("/api/v1/projects/talk/imports/").json()["results"][0]["id"]
    assert carol.get(JOBS).json()["results"] == [job]
    (error,) = carol.get(f"{answer.headers['Location']}errors/").json()
    assert (error["line"], error["field"]) == (2, "prompt")
    lines = b"".join(carol.get(f"{answer.headers['Location']}errors/?format=csv")).splitlines()
    assert (lines[0], len(lines)) == (b"line,field,error", 2)


def test_a_form_is_imported_by_a_mapping_and_checked_first(project: Project, carol: APIClient) -> None:
    assert carol.post(MAPPINGS, {"name": "ours", "mapping": PAIR}, format="json").status_code == 201
    form = {"file": SimpleUploadedFile("rows.csv", CSV.encode())}
    job = carol.post(f"{JOBS}?mapping=ours&dry_run=1", form, format="multipart").json()
    assert (job["file_name"], job["dry_run"], job["mapping"]["prompt"]) == ("rows.csv", True, "question")
    jobs.run_waiting()
    place = f"{JOBS}{job['id']}/"
    assert (carol.get(place).json()["created"], Task.objects.count()) == (1, 0)
    answer = carol.post(f"{place}start/", {"mapping": {**PAIR, "fewer": True}}, format="json")
    assert (answer.status_code, answer.json()["state"]) == (202, "waiting")
    jobs.run_waiting()
    assert (carol.get(place).json()["created"], Task.objects.count()) == (2, 2)
    assert carol.post(f"{place}start/").status_code == 409


def test_a_file_that_is_only_kept_is_shown_before_it_starts(project: Project, carol: APIClient) -> None:
    place = sent(carol, start="0").headers["Location"]
    seen = carol.get(f"{place}preview/").json()
    assert (seen["columns"], seen["layout"]) == (["question", "answer_1", "answer_2"], "comparisons")
    assert seen["suggested_mapping"]["prompt"] == "question"
    seen = carol.get(f"{place}preview/?{urlencode({'mapping': json.dumps(PAIR)})}").json()
    assert [response["text"] for response in seen["tasks"][0]["responses"]] == ["7", "8"]
    assert [row["field"] for row in seen["rejected"]] == ["answer_2"]
    assert (carol.delete(place).json()["state"], carol.delete(place).status_code) == ("cancelled", 409)


def test_what_is_refused_at_the_start_leaves_no_file(project: Project, carol: APIClient) -> None:
    for mapping, code in (("none", "unknown_mapping"), ("{", "bad_mapping"), (json.dumps(PAIR), "missing_column")):
        answer = sent(carol, "a,b\n1,2\n", mapping=mapping)
        assert (answer.status_code, answer.json()["code"]) == (400, code)
    answer = sent(carol, "")
    assert (answer.status_code, answer.json()["code"]) == (400, "empty_file")
    assert (ImportJob.objects.count(), list((settings.ARTIFACTS / "imports").glob("*"))) == (0, [])


@pytest.mark.parametrize("query", [{"dry_run": "maybe"}, {"start": "later"}, {"mapping": "x" * 20_001}])
def test_a_parameter_that_cannot_be_read_is_refused(project: Project, carol: APIClient, query: dict[str, str]) -> None:
    assert sent(carol, **query).status_code == 400
    assert not ImportJob.objects.exists()


def test_a_mapping_that_is_not_right_is_not_kept(project: Project, carol: APIClient) -> None:
    for body in ({"name": "x"}, {"name": "x", "mapping": []}, {"name": "a/b", "mapping": PAIR}, {"mapping": PAIR}):
        assert carol.post(MAPPINGS, body, format="json").status_code == 400
    assert carol.get(MAPPINGS).json()["results"] == []


def test_a_kept_mapping_is_read_and_deleted(project: Project, carol: APIClient) -> None:
    row = carol.post(MAPPINGS, {"name": "ours", "mapping": PAIR}, format="json").json()
    assert carol.get(f"{MAPPINGS}{row['id']}/").json() == row
    assert carol.delete(f"{MAPPINGS}{row['id']}/").status_code == 204
    assert carol.get(f"{MAPPINGS}{row['id']}/").status_code == 404


def test_jobs_of_other_projects_are_not_found(project: Project, carol: APIClient, cast: Cast) -> None:
    other = make_project("other")
    make_member(other, cast.carol, role="manager")
    place = sent(carol, start="0").headers["Location"].replace("/talk/", "/other/")
    assert carol.get(place).status_code == 404
    assert carol.delete(place).status_code == 404
