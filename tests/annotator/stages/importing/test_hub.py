"""Data sets of the Hub, for which a small one stands in."""

import io
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest
from django.conf import LazySettings
from django.core.management import CommandError, call_command
from django.test import Client

from annotator.models import ImportJob, Project, Task
from annotator.stages.importing import jobs
from annotator.stages.importing.jobs import uploads
from tests import builders
from tests.builders import ATTRIBUTES, json_lines, task_row
from tests.conftest import Cast
from tests.hub import FILES, SHA, Hub, served_hub

pytestmark = pytest.mark.usefixtures("workers")


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with served_hub() as address:
        monkeypatch.setenv("HF_ENDPOINT", address)
        yield


def imported(*names: str) -> str:
    out = io.StringIO()
    call_command("import_tasks", "talk", *names, stdout=out)
    return out.getvalue()


@pytest.mark.usefixtures("hub")
def test_every_file_of_rows_of_a_data_set_goes_in(project: Project) -> None:
    assert imported("hub:ours/rows").endswith("2 tasks created, 0 existing, 0 rows rejected\n")


@pytest.mark.usefixtures("hub", "project")
def test_a_folder_of_a_data_set_goes_in_alone() -> None:
    imported("hub:ours/rows/preference")
    assert [task.external_id for task in Task.objects.all()] == ["t-1"]


@pytest.mark.usefixtures("hub", "project")
@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("hub:rows", "names no data set: write OWNER/NAME"),
        ("hub:ours/gone", "hub:ours/gone cannot be read from the Hub: "),
        ("hub:ours/rows/nothing", "holds no file of rows"),
    ],
)
def test_what_the_hub_does_not_have_is_said(name: str, error: str) -> None:
    with pytest.raises(CommandError, match=error):
        imported(name)


@pytest.mark.usefixtures("project")
def test_a_hub_out_of_reach_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    with pytest.raises(CommandError, match="hub:ours/rows cannot be read from the Hub"):
        imported("hub:ours/rows")


# By the light worker -------------------------------------------------------------------------------------------

JOBS = "/api/v1/projects/talk/import-jobs/"
PAGE = "/projects/talk/data/import/"
State = ImportJob.State


@pytest.mark.usefixtures("hub")
def test_each_file_of_a_data_set_becomes_an_import(carol: Any) -> None:
    asked = carol.post(f"{JOBS}?hub=ours/rows")
    assert (asked.status_code, asked.json()["state"], asked.json()["hub"]) == (202, "waiting", "ours/rows")
    jobs.run_waiting()
    done = carol.get(JOBS).json()["results"]
    assert {(job["state"], job["hub"], job["created"]) for job in done} == {
        ("done", f"ours/rows@{SHA}/edit/train.jsonl", 1),
        ("done", f"ours/rows@{SHA}/preference/train.jsonl", 1),
    }
    assert sorted(task.external_id for task in Task.objects.all()) == ["t-1", "t-2"]


@pytest.mark.usefixtures("hub")
def test_a_fetched_file_is_looked_at_before_it_is_imported(cast: Cast, client: Client) -> None:
    client.force_login(cast.carol)
    page = client.post(PAGE, {"hub": "hub:ours/rows/edit"}, follow=True)
    assert "Waiting for the worker." in page.content.decode()
    jobs.run_waiting()
    job = ImportJob.objects.get()
    assert (job.state, Task.objects.exists()) == (State.UPLOADED, False)
    shown = client.get(f"/projects/talk/data/imports/{job.pk}/").content.decode()
    assert "t-2" in shown
    assert "train.jsonl" in shown
    jobs.start(job, dry_run=False, mapping=None)
    jobs.run_waiting()
    assert [task.external_id for task in Task.objects.all()] == ["t-2"]


@pytest.mark.usefixtures("hub")
def test_files_of_one_person_are_theirs_by_their_folders(
    project: Project, carol: Any, client: Client, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    builders.imported(project, task_row("t-1", responses=1))
    row = json_lines({"id": "t-1", "label_annotations": {key: {"scale_3": "3"} for key in ATTRIBUTES}}).getvalue()
    for folder in ("out/ann/", "out/bea/", ""):
        monkeypatch.setitem(FILES, f"{folder}annotated_instances.jsonl", row)
    for name in ("out", "annotated_instances.jsonl"):
        carol.post(f"{JOBS}?hub=ours/rows/{name}&start=0")
    jobs.run_waiting()
    client.force_login(cast.carol)
    for job in ImportJob.objects.order_by("hub"):
        shown = client.get(f"/projects/talk/data/imports/{job.pk}/").content.decode()
        assert ('name="rated_by"' in shown) == ("/out/" not in job.hub)
        jobs.start(job, dry_run=False, mapping=None)
    jobs.run_waiting()
    ended = ImportJob.objects.order_by("hub").values_list("ratings_added", "rejected")
    assert list(ended) == [(0, 1), (1, 0), (1, 0)]


@pytest.mark.usefixtures("hub")
def test_the_operators_token_opens_nothing_for_managers(carol: Any, settings: LazySettings) -> None:
    settings.HF_TOKEN = "hf_secret"
    carol.post(f"{JOBS}?hub=ours/rows")
    jobs.run_waiting()
    assert Task.objects.count() == 2
    assert set(Hub.tokens) == {None}


@pytest.mark.usefixtures("hub")
@pytest.mark.parametrize(
    ("name", "status", "error"),
    [
        ("rows", 400, "names no data set"),
        ("../etc/passwd", 400, "names no data set"),
        ("a/..", 400, "names no data set"),
        ("a/b@..", 400, "names no data set"),
        ("a/b\0", 400, ""),
        ("a" * 301, 400, ""),
    ],
)
def test_a_bad_name_is_refused_at_once(carol: Any, name: str, status: int, error: str) -> None:
    answer = carol.post(f"{JOBS}?{urlencode({'hub': name})}")
    assert answer.status_code == status
    assert error in answer.json().get("detail", "")


@pytest.mark.usefixtures("hub")
@pytest.mark.parametrize("name", ["ours/gone", "ours/rows/nothing"])
def test_what_cannot_be_fetched_is_said_on_the_job(carol: Any, name: str) -> None:
    place = carol.post(f"{JOBS}?{urlencode({'hub': name})}").headers["Location"]
    jobs.run_waiting()
    job = carol.get(place).json()
    assert job["state"] == "failed"
    assert name.partition("/")[0] in job["error"]


@pytest.mark.usefixtures("hub")
def test_a_file_above_the_limit_is_not_fetched(carol: Any, settings: LazySettings) -> None:
    settings.IMPORT_MAX_BYTES = 10
    place = carol.post(f"{JOBS}?hub=ours/rows").headers["Location"]
    jobs.run_waiting()
    assert "files of at most 10 are fetched" in carol.get(place).json()["error"]


@pytest.mark.usefixtures("hub")
def test_more_files_than_a_project_may_hold_are_not_fetched(carol: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "MOST_WITH_FILE", 1)
    place = carol.post(f"{JOBS}?hub=ours/rows").headers["Location"]
    jobs.run_waiting()
    job = carol.get(place).json()
    assert (job["state"], ImportJob.objects.count()) == ("failed", 1)
    assert "name a smaller part" in job["error"]


@pytest.mark.usefixtures("hub")
def test_the_next_worker_fetches_again_what_a_lost_one_began(carol: Any) -> None:
    carol.post(f"{JOBS}?hub=ours/rows")
    job = ImportJob.objects.get()
    ImportJob.objects.update(state=State.WORKING, attempt=1, tries=1)
    job.directory().mkdir(parents=True)
    (job.directory() / "file").write_bytes(b'{"id": "t-')
    jobs.run_waiting()
    assert sorted(task.external_id for task in Task.objects.all()) == ["t-1", "t-2"]
    assert ImportJob.objects.filter(state=State.DONE).count() == 2


@pytest.mark.usefixtures("hub")
def test_a_mapping_that_does_not_fit_the_fetched_file_is_refused(carol: Any) -> None:
    mapping = json.dumps({"prompt": "question", "responses": [{"text": "answer"}]})
    place = carol.post(f"{JOBS}?{urlencode({'hub': 'ours/rows/edit', 'mapping': mapping})}").headers["Location"]
    jobs.run_waiting()
    assert "question" in carol.get(place).json()["error"]
    assert not Task.objects.exists()
