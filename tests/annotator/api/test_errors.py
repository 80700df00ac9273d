"""Every refusal is {detail, code, errors} with a status that fits, whatever was sent."""

import json
import re
from typing import Any

import pytest
from django.conf import LazySettings
from django.contrib.staticfiles.storage import staticfiles_storage
from django.db import OperationalError
from django.test import Client, RequestFactory
from rest_framework.test import APIClient

from annotator.api import errors, health
from annotator.models import Project
from annotator.pages.account import login
from tests.annotator.api.test_transfer import ENDS_OF_TIME
from tests.builders import claimed, make_task
from tests.conftest import As, Cast

DEEP = "[" * 100_000 + "]" * 100_000
FAIRLY_DEEP = json.dumps({"slug": "a", "name": "A", "training_config": json.loads('{"a":' * 60 + "1" + "}" * 60)})


def post(client: APIClient, body: str, kind: str = "application/json") -> Any:
    return client.post("/api/v1/projects/", body, content_type=kind)


def told(answer: Any) -> tuple[int, str]:
    assert set(answer.json()) == {"detail", "code", "errors"}
    assert answer.json()["detail"]
    return answer.status_code, answer.json()["code"]


@pytest.mark.parametrize("body", ["{", "\x00", "nonsense", '{"slug": NaN}', "\ufeff{}", DEEP, FAIRLY_DEEP])
def test_a_body_that_is_no_json_is_400(carol: APIClient, body: str) -> None:
    assert told(post(carol, body)) == (400, "parse_error")


@pytest.mark.parametrize("body", ["[]", "null", "3", '"text"', "{}"])
def test_json_of_another_shape_is_400(carol: APIClient, body: str) -> None:
    assert told(post(carol, body)) == (400, "invalid")


@pytest.mark.parametrize("escape", [r"\u0000", r"\ud800", r"\udfff\ud800"])
@pytest.mark.parametrize("place", ["slug", "name", "description", "guidelines", "training_config", "strange"])
def test_what_cannot_be_stored_is_refused_with_its_place(carol: APIClient, place: str, escape: str) -> None:
    value = f'{{"backbone": "a{escape}"}}' if place == "training_config" else f'"a{escape}"'
    answer = post(carol, f'{{"{place}": {value}}}')
    assert told(answer) == (400, "invalid")
    assert [key.partition(".")[0] for key in answer.json()["errors"]] == [place]


@pytest.mark.parametrize("escape", [r"\u0000", r"\ud800"])
def test_names_of_fields_are_checked_too(carol: APIClient, escape: str) -> None:
    assert told(post(carol, f'{{"a{escape}": 1}}')) == (400, "invalid")
    assert told(post(carol, f'{{"training_config": {{"a{escape}": 1}}}}')) == (400, "invalid")


def test_a_number_without_end_is_refused(carol: APIClient) -> None:
    assert told(post(carol, '{"training_config": {"seed": 1e999}}')) == (400, "invalid")


def test_another_content_type_is_415(carol: APIClient) -> None:
    assert told(post(carol, "slug=a", "application/x-www-form-urlencoded")) == (415, "unsupported_media_type")


def test_a_form_s_method_is_405(carol: APIClient) -> None:
    assert told(carol.put("/api/v1/projects/talk/", {})) == (405, "method_not_allowed")


def test_an_answer_in_html_is_not_acceptable(carol: APIClient) -> None:
    assert told(carol.get("/api/v1/projects/", headers={"accept": "text/html"})) == (406, "not_acceptable")


def test_a_body_past_the_limit_is_413(carol: APIClient, settings: LazySettings) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 100
    assert told(post(carol, json.dumps({"name": "a" * 200}))) == (413, "too_large")


@pytest.mark.parametrize(
    "path", ["nothing/", "nothing", "projects/a b/", "projects/talk/nothing/", "training-runs/x/", ""]
)
def test_an_unknown_address_answers_json(client: Client, path: str) -> None:
    assert told(client.get(f"/api/v1/{path}")) == (404, "not_found")


def test_pages_keep_their_own_404(client: Client) -> None:
    assert client.get("/nothing/").headers["Content-Type"].startswith("text/html")


def test_what_breaks_before_a_view_answers_json_too() -> None:
    request = RequestFactory().get("/api/v1/projects/")
    assert errors.bad_request(request, ValueError()).status_code == 400
    assert json.loads(errors.server_error(request).content)["code"] == "error"  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["annotation", "skip", "report", "heartbeat", ""])
def test_an_id_past_bigint_is_404(cast: Cast, as_user: As, name: str) -> None:
    client, path = as_user(cast.alice), f"/api/v1/assignments/{10**30}/{name}".rstrip("/") + "/"
    call = {"annotation": client.put, "": client.delete}.get(name, client.post)
    assert told(call(path, {})) == (404, "not_found")


@pytest.mark.parametrize("value", [10**30, -(10**30), 10**400])
@pytest.mark.parametrize(
    "field", ["base_annotators", "lease_minutes", "retrain_after_labels", "validation_share", "keep"]
)
def test_a_number_past_its_column_is_400(carol: APIClient, field: str, value: int) -> None:
    assert told(carol.patch("/api/v1/projects/talk/", {field: value})) == (400, "invalid")


@pytest.mark.parametrize("text", ["a\x00b", "a\ud800b"])
@pytest.mark.parametrize("field", ["justification", "note"])
def test_annotators_texts_are_checked(project: Project, cast: Cast, as_user: As, field: str, text: str) -> None:
    task = make_task(project)
    held = claimed(project, cast.alice)
    ratings = [{"response": response.public_id, "scores": {}, "checks": [text]} for response in task.responses.all()]
    path, call = (
        ("annotation", as_user(cast.alice).put) if field == "justification" else ("skip", as_user(cast.alice).post)
    )
    body = {"ratings": ratings, field: text} if field == "justification" else {"reason": "other", field: text}
    answer = call(f"/api/v1/assignments/{held.pk}/{path}/", json.dumps(body), content_type="application/json")
    assert told(answer) == (400, "invalid")


@pytest.mark.parametrize("query", ["cursor=abc", "cursor=cD1hYmM=", "cursor=cD0lMDA=", "cursor=bz14", "cursor=%FF"])
def test_a_cursor_that_is_not_ours_is_404(carol: APIClient, query: str) -> None:
    """The ones in base64 say p=abc, p=%00 and o=x."""
    assert told(carol.get(f"/api/v1/projects/talk/tasks/?{query}")) == (404, "not_found")


def test_a_cursor_past_every_id_is_an_empty_page(carol: APIClient) -> None:
    answer = carol.get("/api/v1/projects/talk/tasks/?cursor=cD05OTk5OTk5OTk5OTk5OTk5OTk5OTk5OTk=")
    assert (answer.status_code, answer.json()["results"]) == (200, [])


@pytest.mark.parametrize("query", ["state=nothing", "state=%00", "external_id=%00", "external_id=%ED%A0%80"])
def test_a_filter_never_breaks_the_server(carol: APIClient, query: str) -> None:
    assert carol.get(f"/api/v1/projects/talk/tasks/?{query}").status_code in {200, 400}


@pytest.mark.parametrize("moment", ["yesterday", "%00", "2026-13-01", "99999-01-01", *ENDS_OF_TIME])
def test_a_time_that_is_none_is_400(carol: APIClient, moment: str) -> None:
    assert told(carol.get(f"/api/v1/projects/talk/annotations/?submitted_at__gte={moment}")) == (400, "invalid")


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(*_: Any, **__: Any) -> None:
        raise KeyError("tone")

    monkeypatch.setattr(login.Login, "dispatch", breaks)
    monkeypatch.setattr(health.Live, "get", breaks)


@pytest.mark.parametrize("language", ["en", "de"])
def test_the_page_of_an_error_needs_nothing_that_may_be_broken_and_has_a_way_back_and_the_logs_number(
    language: str, broken: None, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Neither the database, which this test may not use, nor the names of static files.
    monkeypatch.setattr(staticfiles_storage, "url", lambda name: pytest.fail(f"{name} has no name here"))
    answer = Client(raise_request_exception=False, headers={"accept-language": language}).get("/login/")
    page = answer.content.decode()
    assert (answer.status_code, answer.headers["Content-Type"]) == (500, "text/html; charset=utf-8")
    (number,) = re.findall(r"<strong>(\d{4}-\d{4})</strong>", page)
    [record] = [record for record in caplog.records if number in record.getMessage()]
    assert record.getMessage() == f"Error {number}: GET /login/"
    assert record.exc_info
    assert str(record.exc_info[1]) == "'tone'"
    assert all(f'href="/static/css/{name}.css"' in page for name in ("variables", "rewardloop"))
    assert 'href="/"' in page


def test_a_program_is_told_the_number_too(broken: None, caplog: pytest.LogCaptureFixture) -> None:
    answer = Client(raise_request_exception=False).get("/api/v1/health/live/")
    assert (answer.status_code, answer.json()["code"]) == (500, "error")
    assert re.findall(r"\d{4}-\d{4}", answer.json()["detail"])[0] in caplog.text


def test_what_is_answered_while_the_database_is_away_has_the_products_face(monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: Any, **__: Any) -> None:
        raise OperationalError("connection refused")

    monkeypatch.setattr(login.Login, "dispatch", away)
    answer = Client(raise_request_exception=False).get("/login/")
    assert answer.status_code == 503
    assert 'class="brand" href="/"' in answer.content.decode()
    assert "/static/css/rewardloop.css" in answer.content.decode()
