"""Releases over REST, on the page and by command: made, downloaded whole and in parts, deleted, taken to the Hub."""

import hashlib
import io
import json
import sys
import tarfile
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from django.conf import LazySettings
from django.core.management import CommandError, call_command
from django.test import Client
from rest_framework.test import APIClient

from annotator.api import releases as views
from annotator.api.scopes import scopes_for
from annotator.models import AuditEntry, Release, Task
from annotator.outputs.releases import release_jobs
from tests.annotator.outputs.releases.conftest import Made

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("no_writing_process")]
ADDRESS = "/api/v1/projects/talk/releases/"
PAGE = "/projects/talk/data/releases/"


def fetched(client: APIClient | Client, address: str, **headers: str) -> tuple[Any, bytes]:
    """The answer, closed as a server closes it, and its content."""
    answer: Any = client.get(address, headers={name.replace("_", "-"): value for name, value in headers.items()})
    content = b"".join(answer) if answer.streaming else answer.content
    answer.close()
    return answer, content


@pytest.fixture
def release(rated: list[Task], made: Made) -> Release:
    return made(license="cc-by-4.0")


# REST ------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("rated")
def test_a_release_over_rest(carol: APIClient) -> None:
    asked = carol.post(ADDRESS, {"license": "cc-by-4.0", "title": "Answers"}, format="json")
    assert (asked.status_code, asked["Location"]) == (202, f"{ADDRESS}1/")
    assert carol.get(f"{ADDRESS}1/files/").json() == []
    early = carol.get(f"{ADDRESS}1/archive/")
    assert (early.status_code, early.json()["code"]) == (409, "no_files")
    release_jobs.run_waiting()
    (row,) = carol.get(ADDRESS).json()["results"]
    assert (row["number"], row["state"], row["license"], row["counts"]["tasks"]) == (1, "done", "cc-by-4.0", 6)
    assert carol.get(f"{ADDRESS}1/").json() == row
    assert carol.delete(f"{ADDRESS}1/").status_code == 204
    assert carol.get(f"{ADDRESS}1/").status_code == 404


def test_each_file_over_rest(carol: APIClient, release: Release) -> None:
    listed = carol.get(f"{ADDRESS}1/files/").json()
    assert "data/train-00000-of-00001.parquet" in {file["path"] for file in listed}
    for file in listed:
        answer, content = fetched(carol, f"{ADDRESS}1/files/{file['path']}")
        assert (len(content), hashlib.sha256(content).hexdigest()) == (file["size"], file["sha256"])
        assert answer["ETag"] == f'"{file["sha256"]}"'
    part, content = fetched(carol, f"{ADDRESS}1/files/manifest.json", Range="bytes=0-0")
    assert (part.status_code, content) == (206, b"{")


@pytest.mark.parametrize("path", ["nothing.txt", "../1/README.md", "data", "%2e%2e/%2e%2e/secret-key"])
def test_there_are_no_other_files(carol: APIClient, release: Release, path: str) -> None:
    assert carol.get(f"{ADDRESS}1/files/{path}").status_code == 404


def test_the_archive_unpacks_to_the_files(carol: APIClient, release: Release) -> None:
    answer, content = fetched(carol, f"{ADDRESS}1/archive/")
    assert (len(content), hashlib.sha256(content).hexdigest()) == (release.archive_size, release.archive_sha256)
    assert answer["Content-Disposition"] == 'attachment; filename="talk-release-1.tar"'
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        unpacked = {member.name: archive.extractfile(member).read() for member in archive}  # type: ignore[union-attr]
        assert {member.mtime for member in archive} == {0}
    assert unpacked == {
        f"release-1/{file['path']}": (release.folder() / file["path"]).read_bytes() for file in release.files
    }


@pytest.mark.parametrize(("first", "last"), [(0, 9), (500, 1_600), (1_000, -1), (-1, -1)])
def test_a_download_of_the_archive_goes_on_where_it_broke_off(
    carol: APIClient, release: Release, first: int, last: int
) -> None:
    answer, whole = fetched(carol, f"{ADDRESS}1/archive/")
    first, last = first % len(whole), last % len(whole)
    part, content = fetched(carol, f"{ADDRESS}1/archive/", Range=f"bytes={first}-{last}", If_Range=answer["ETag"])
    assert (part.status_code, content) == (206, whole[first : last + 1])


@pytest.mark.parametrize("body", [{"license": "mine"}, {"title": 200 * "a"}, {"leave_out_failing": "perhaps"}])
def test_what_cannot_be_made_is_refused_at_once(carol: APIClient, body: dict[str, Any]) -> None:
    answer = carol.post(ADDRESS, body, format="json")
    assert (answer.status_code, list(answer.json()["errors"])) == (400, list(body))
    assert not Release.objects.exists()


def test_a_token_needs_manage_to_make_one_and_read_to_download_it() -> None:
    assert scopes_for(views.Releases, "POST") == scopes_for(views.OneRelease, "DELETE") == {"manage"}
    assert scopes_for(views.ReleaseArchive, "GET") == {"read"}


# The page --------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("rated")
def test_a_release_on_the_page(pages: Client) -> None:
    assert "There is no release" in pages.get(PAGE).content.decode()
    sent = pages.post(PAGE, {"license": "mit", "title": "Answers"})
    assert (sent.status_code, sent["Location"]) == (302, PAGE)
    assert "hx-trigger" in pages.get(f"{PAGE}list/").content.decode()
    release_jobs.run_waiting()
    shown = pages.get(PAGE).content.decode()
    assert "hx-trigger" not in shown
    assert Release.objects.get().content_hash in shown
    _, readme = fetched(pages, f"{PAGE}1/files/README.md")
    assert b"license: mit" in readme
    assert fetched(pages, f"{PAGE}1/archive/")[1].startswith(b"release-1/README.md")
    pages.post(f"{PAGE}1/delete/")
    assert pages.get(f"{PAGE}1/archive/").status_code == 404


@pytest.mark.usefixtures("project")
def test_the_page_says_what_is_wrong_with_a_field(pages: Client) -> None:
    answer = pages.post(PAGE, {"license": "other", "notes": "See /home/ola/notes/all.txt"})
    assert answer.status_code == 422
    assert "Write which licence it is" in answer.content.decode()
    answer = pages.post(PAGE, {"license": "mit", "notes": "See /home/ola/notes/all.txt"})
    assert "it contains a path in a home folder" in answer.content.decode()


def test_the_page_says_why_there_is_nothing_to_download(pages: Client, release: Release) -> None:
    Release.objects.update(state="withdrawn", archive_sha256="")
    answer = pages.get(f"{PAGE}1/archive/", follow=True)
    assert "its files were withdrawn. Make a new release." in answer.content.decode()


# The command -----------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("rated")
def test_the_command_makes_a_release_and_copies_it(tmp_path: Path) -> None:
    call_command("release", "talk", license="cc0-1.0", intended_use="Tests.", to=str(tmp_path / "copy"))
    release = Release.objects.get()
    assert (release.state, release.requested_by) == ("done", None)
    for file in release.files:
        assert hashlib.sha256((tmp_path / "copy" / file["path"]).read_bytes()).hexdigest() == file["sha256"]
    assert AuditEntry.objects.get(action="release.requested").via == "command"


def test_the_command_copies_a_release_that_exists(release: Release, tmp_path: Path) -> None:
    call_command("release", "talk", number=1, to=str(tmp_path / "copy"))
    assert json.loads((tmp_path / "copy" / "manifest.json").read_text())["release"] == 1
    assert Release.objects.count() == 1


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"number": 7}, "talk has no release 7"),
        ({"license": "mine"}, "Choose one of these licences"),
        ({"push": "ola/answers"}, "Set HF_TOKEN"),
        ({}, "There are no labels"),
    ],
)
@pytest.mark.usefixtures("project")
def test_the_command_says_what_is_wrong(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(CommandError, match=reason):
        call_command("release", "talk", **options)


@pytest.mark.usefixtures("rated")
def test_the_command_writes_into_no_folder_that_is_in_use(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(CommandError, match="is not empty"):
        call_command("release", "talk", to=str(tmp_path))
    assert not Release.objects.exists()


# The Hub ---------------------------------------------------------------------------------------------------


class HubError(Exception):
    """What the library's errors of HTTP derive from."""


class RefusedByHub(HubError):
    """The library's HfHubHTTPError."""


class Hub:
    """A stand-in of `huggingface_hub`, which notes its calls. The repository `gone` refuses."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.files: dict[str, bytes] = {}
        library, errors = ModuleType("huggingface_hub"), ModuleType("huggingface_hub.errors")
        vars(library).update(HfApi=self.api)
        vars(errors).update(HfHubHTTPError=RefusedByHub, HFValidationError=ValueError)
        monkeypatch.setitem(sys.modules, "huggingface_hub", library)
        monkeypatch.setitem(sys.modules, "huggingface_hub.errors", errors)

    def api(self, token: str, endpoint: str | None) -> "Hub":
        self.calls.append(("HfApi", {"token": token}))
        return self

    def create_repo(self, repository: str, **options: Any) -> None:
        if repository.endswith("/gone"):
            raise RefusedByHub("401: hf-secret-token may not write to ola/gone")
        self.calls.append(("create_repo", {"repository": repository, **options}))

    def upload_folder(self, *, folder_path: str, **options: Any) -> SimpleNamespace:
        top = Path(folder_path)
        self.files = {str(path.relative_to(top)): path.read_bytes() for path in top.rglob("*") if path.is_file()}
        self.calls.append(("upload_folder", options))
        return SimpleNamespace(commit_url="https://huggingface.co/datasets/ola/answers/commit/1")


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, settings: LazySettings) -> Hub:
    settings.HF_TOKEN = "hf-secret-token"
    return Hub(monkeypatch)


def test_a_release_is_taken_to_the_hub(release: Release, hub: Hub, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("release", "talk", number=1, push="ola/answers")
    names = [name for name, _ in hub.calls]
    assert names == ["HfApi", "HfApi", "create_repo", "upload_folder"]
    assert hub.calls[2][1] == {
        "repository": "ola/answers",
        "repo_type": "dataset",
        "private": True,
        "exist_ok": True,
    }
    uploaded = hub.calls[3][1]
    assert uploaded["delete_patterns"] == ["data/*", "preference/*", "disagreements/*"]
    assert set(hub.files) == {file["path"] for file in release.files}
    assert "datasets/ola/answers/commit/1" in capsys.readouterr().out
    assert AuditEntry.objects.get(action="release.pushed").details["repository"] == "ola/answers"


def test_a_dataset_is_public_only_where_somebody_says_so(release: Release, hub: Hub) -> None:
    call_command("release", "talk", number=1, push="ola/answers", public=True)
    assert hub.calls[2][1]["private"] is False


def test_the_answer_of_the_hub_is_told_without_the_token(release: Release, hub: Hub) -> None:
    with pytest.raises(CommandError, match=r"The Hub did not take the release: 401: \.\.\. may not write"):
        call_command("release", "talk", number=1, push="ola/gone")
    assert not AuditEntry.objects.filter(action="release.pushed").exists()


@pytest.mark.usefixtures("rated")
def test_without_the_library_no_release_is_made(monkeypatch: pytest.MonkeyPatch, settings: LazySettings) -> None:
    settings.HF_TOKEN = "hf-secret-token"
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(CommandError, match="huggingface_hub is not installed"):
        call_command("release", "talk", push="ola/answers")
    assert not Release.objects.exists()
