"""Files in and out over REST."""

import csv
import gzip
import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import LazySettings
from django.conf import settings as django_settings
from django.core.files.uploadedfile import SimpleUploadedFile
from rest_framework.test import APIClient

from annotator.infrastructure.web.lane_shares import GONE
from annotator.models import Import, Project, Task
from tests.builders import ATTRIBUTES, label_row, make_task, pseudonym, rate, task_row
from tests.conftest import Cast

IMPORT = "/api/v1/projects/talk/import/"
ENDS_OF_TIME = ["0001-01-01T00:00:00%2B23:59", "9999-12-31T23:59:59-23:59"]
"""Times whose UTC has no year that Python knows."""
NOTHING = {
    "created": 0,
    "existing": 0,
    "rejected": [],
    "rejected_total": 0,
    "ratings_added": 0,
    "ratings_left_out": 0,
    "notes": [],
    "import_id": None,
    "dry_run": False,
}
LINES = b"".join(json.dumps(task_row(f"t{number}")).encode() + b"\n" for number in range(2))


def sent(client: APIClient, body: bytes, kind: str = "application/x-ndjson", query: str = "", **extra: Any) -> Any:
    return client.generic("POST", IMPORT + query, body, content_type=kind, **extra)  # type: ignore[arg-type]


def csv_file() -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, ["prompt", "response", *ATTRIBUTES])
    writer.writeheader()
    writer.writerows(label_row("What is it?", f"It is {number}.") for number in range(2))
    return text.getvalue().encode()


@pytest.mark.parametrize(
    "kind",
    [
        "application/x-ndjson",
        "application/json",
        "text/plain",
        "application/octet-stream",
        "application/x-www-form-urlencoded",
        "",
    ],
)
def test_json_lines_go_in_whatever_they_are_called(carol: APIClient, kind: str) -> None:
    answer = sent(carol, LINES, kind)
    assert (answer.status_code, answer.json()) == (
        200,
        NOTHING | {"created": 2, "import_id": Import.objects.get().pk},
    )


def test_the_same_file_twice_changes_nothing(carol: APIClient) -> None:
    sent(carol, LINES)
    assert sent(carol, LINES).json() == NOTHING | {"existing": 2}


@pytest.mark.parametrize(
    ("body", "created"),
    [
        (json.dumps([task_row("a"), task_row("b")]).encode(), 2),
        (csv_file(), 1),
        (gzip.compress(LINES, mtime=0), 2),
        (gzip.compress(csv_file(), mtime=0), 1),
        (b"\xef\xbb\xbf" + LINES, 2),
        (b"", 0),
    ],
    ids=["list", "csv", "gzip", "gzipped csv", "bom", "empty"],
)
def test_the_format_is_sniffed(carol: APIClient, body: bytes, created: int) -> None:
    assert sent(carol, body, "application/octet-stream").json()["created"] == created


@pytest.mark.parametrize("length", [7, 1_000_000])
def test_an_upload_goes_in_from_memory_and_from_disk(carol: APIClient, length: int) -> None:
    rows = b"".join(json.dumps(task_row(f"t{number}", prompt="x" * length)).encode() + b"\n" for number in range(3))
    assert (len(rows) > django_settings.FILE_UPLOAD_MAX_MEMORY_SIZE) == (length == 1_000_000)
    answer = carol.post(IMPORT, {"file": SimpleUploadedFile("tasks.jsonl", rows)}, format="multipart")
    assert answer.json()["created"] == 3


def test_a_body_larger_than_django_s_limit_is_streamed(carol: APIClient, settings: LazySettings) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1_000
    rows = LINES + json.dumps(task_row("long", prompt="x" * 2_000)).encode()
    assert sent(carol, rows).json()["created"] == 3


def test_a_chunked_body_is_read_to_its_end(carol: APIClient) -> None:
    """As a server may hand it over: no length, and an input that ends by itself."""
    chunked: dict[str, Any] = {"wsgi.input": io.BytesIO(LINES), "wsgi.input_terminated": True, "CONTENT_LENGTH": ""}
    answer = sent(carol, b"", HTTP_TRANSFER_ENCODING="chunked", **chunked)
    assert answer.json()["created"] == 2


def test_bad_rows_are_named_and_good_ones_go_in(carol: APIClient) -> None:
    bad = json.dumps(task_row("bad") | {"responses": []}).encode() + b"\n"
    answer = sent(carol, LINES + bad + b"{\n").json()
    assert (answer["created"], [row["line"] for row in answer["rejected"]]) == (2, [3, 4])
    assert set(answer["rejected"][0]) == {"line", "error"}


def test_an_import_that_takes_too_long_ends_and_says_where_it_has_time(
    carol: APIClient, settings: LazySettings
) -> None:
    settings.IMPORT_SECONDS = -1
    answer = sent(carol, LINES)
    assert (answer.status_code, answer.json()["code"]) == (413, "took_too_long")
    assert "`import-jobs/`" in answer.json()["detail"]


def test_an_import_ends_after_the_batch_in_which_its_sender_has_gone(
    carol: APIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("annotator.stages.importing.batches.BATCH", 50)
    looks = iter(range(1_000_000))
    rows = b"".join(json.dumps(task_row(f"t{number}")).encode() + b"\n" for number in range(4_000))
    gone: dict[str, Any] = {GONE: lambda: next(looks) > 4}
    answer = sent(carol, rows, **gone)
    assert (answer.status_code, answer.json()["code"]) == (400, "sender_gone")
    assert 0 < Task.objects.count() < 4_000
    assert Import.objects.get().created == Task.objects.count()


@pytest.mark.parametrize("value", ["1", "true", "yes"])
def test_a_dry_run_counts_and_writes_nothing(carol: APIClient, value: str) -> None:
    answer = sent(carol, LINES, query=f"?dry_run={value}").json()
    assert (answer["created"], answer["dry_run"]) == (2, True)
    assert not Task.objects.exists()


def test_an_unclear_dry_run_writes_nothing(carol: APIClient) -> None:
    assert sent(carol, LINES, query="?dry_run=perhaps").status_code == 400
    assert not Task.objects.exists()


@pytest.mark.parametrize("body", [b"\xff\xfea\x00", b"\x1f\x8bnonsense", b"neither", b"PAR1nonsense"])
def test_a_file_that_cannot_be_read_is_400(carol: APIClient, body: bytes) -> None:
    answer = sent(carol, body)
    assert (answer.status_code, answer.json()["code"]) == (400, "unreadable")


def test_an_upload_without_a_file_is_400(carol: APIClient) -> None:
    answer = carol.post(IMPORT, {"note": "nothing"}, format="multipart")
    assert (answer.status_code, list(answer.json()["errors"])) == (400, ["file"])


def test_an_upload_that_is_malformed_is_400(carol: APIClient) -> None:
    assert sent(carol, b"nonsense", "multipart/form-data").status_code == 400


# Export ----------------------------------------------------------------------------------------------------


@pytest.fixture
def labelled(project: Project, cast: Cast) -> Project:
    make_task(project, "one")
    for user in cast.annotators:
        rate(project, user, justification="Said by one.")
    return project


def exported(client: APIClient, query: str = "", **extra: Any) -> Any:
    return client.get(f"/api/v1/projects/talk/export/{query}", **extra)


def body(answer: Any) -> bytes:
    chunks: Iterator[bytes] = answer.streaming_content
    return b"".join(chunks)


@pytest.mark.parametrize("layout", ["helpsteer2", "disagreements", "annotations"])
@pytest.mark.parametrize(("format", "kind"), [("jsonl", "application/x-ndjson"), ("csv", "text/csv; charset=utf-8")])
def test_an_export_is_a_named_stream(carol: APIClient, labelled: Project, layout: str, format: str, kind: str) -> None:
    answer = exported(carol, f"?layout={layout}&format={format}")
    assert (answer.status_code, answer.streaming, answer.headers["Content-Type"]) == (200, True, kind)
    assert answer.headers["Content-Disposition"] == f'attachment; filename="talk-{layout}.{format}"'
    assert body(answer).count(b"\n") == (6 if layout == "annotations" else 2) + (format == "csv")


def test_helpsteer2_in_json_lines_is_what_comes_unasked(carol: APIClient, labelled: Project) -> None:
    row = json.loads(body(exported(carol)).splitlines()[0])
    assert list(row) == ["prompt", "response", *ATTRIBUTES]
    assert row["response"] == "Answer 0 to one."


def test_annotations_name_nobody(carol: APIClient, labelled: Project, cast: Cast, project: Project) -> None:
    row = json.loads(body(exported(carol, "?layout=annotations")).splitlines()[0])
    assert list(row)[:5] == ["task", "response", "annotator", "revision", "scores"]
    assert {"preference", "justification", "submitted_at"} < set(row)
    assert (row["task"], row["response"], row["annotator"]) == ("one", "1", pseudonym(cast.alice, project))


def test_labels_go_round(carol: APIClient, labelled: Project) -> None:
    lines = body(exported(carol))
    assert carol.post("/api/v1/projects/", {"slug": "again", "name": "Again"}).status_code == 201
    carol.generic("POST", "/api/v1/projects/again/import/", lines, content_type="application/x-ndjson")  # type: ignore[arg-type]
    assert body(carol.get("/api/v1/projects/again/export/")) == lines


def test_since_leaves_out_what_is_older(carol: APIClient, labelled: Project) -> None:
    assert body(exported(carol, "?since=2026-01-01T00:00:00Z")) != b""
    assert body(exported(carol, "?since=2026-02-01")) == b""


def test_an_export_takes_filters(carol: APIClient, labelled: Project) -> None:
    everything = body(exported(carol))
    source = Task.objects.get(project=labelled).from_import_id
    assert body(exported(carol, f"?source={source}&until=2126-01-01&language=")) == everything
    for nothing in ("until=2026-01-01T00:00:00Z", "state=open", "language=German", f"source={10**15}"):
        assert body(exported(carol, f"?{nothing}")) == b""


@pytest.mark.parametrize("wrong", ["until=soon", "state=retired", "language=xx-nope", "source=x", "source=-1"])
def test_a_filter_that_there_is_not_is_400(carol: APIClient, wrong: str) -> None:
    answer = exported(carol, f"?{wrong}")
    assert (answer.status_code, list(answer.json()["errors"])) == (400, [wrong.partition("=")[0]])


def test_an_export_s_format_is_not_in_the_accept_header(carol: APIClient, labelled: Project) -> None:
    assert exported(carol, "?format=csv", headers={"accept": "text/csv"}).status_code == 200


@pytest.mark.parametrize("query", ["layout=cubist", "format=xml", "layout=", "format=%ED%A0%80"])
def test_an_export_that_there_is_not_is_400(carol: APIClient, query: str) -> None:
    answer = exported(carol, f"?{query}")
    assert (answer.status_code, answer.json()["code"]) == (400, "unknown_export")


@pytest.mark.parametrize("since", ["yesterday", "2026-02-30", "%00", "2026-01-01T00:00:00%2B99:00", *ENDS_OF_TIME])
def test_a_since_that_is_no_time_is_400(carol: APIClient, since: str) -> None:
    answer = exported(carol, f"?since={since}")
    assert (answer.status_code, list(answer.json()["errors"])) == (400, ["since"])
