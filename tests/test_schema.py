"""The OpenAPI schema is whole, and the server keeps to it under whatever a client sends."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import call_command
from django.core.wsgi import get_wsgi_application
from django.test import Client
from django.urls import URLResolver
from drf_spectacular.generators import SchemaGenerator
from hypothesis import HealthCheck, Phase, given, settings

from annotator.models import Project, Role, Token, User
from annotator.urls import rest
from tests.builders import make_member, make_task, make_user, rate
from tests.conftest import Cast

METHODS = {"get", "post", "put", "patch", "delete"}


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    file: Path = tmp_path_factory.mktemp("schema") / "schema.yml"
    call_command("spectacular", "--validate", "--fail-on-warn", "--file", str(file))
    return loaded(file.read_bytes())


def loaded(document: bytes) -> dict[str, Any]:
    """As `yaml.safe_load` reads it, which takes seconds as it is written in Python."""
    return dict(yaml.load(document, Loader=yaml.CSafeLoader))


def operations(schema: dict[str, Any]) -> list[dict[str, Any]]:
    return [operation for path in schema["paths"].values() for method, operation in path.items() if method in METHODS]


def test_it_comes_without_a_warning(schema: dict[str, Any]) -> None:
    assert len(operations(schema)) > 30


@pytest.mark.django_db
def test_it_is_made_once_and_served_to_everybody(schema: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    first = Client().get("/api/v1/schema/")
    monkeypatch.setattr(SchemaGenerator, "get_schema", None)
    assert Client().get("/api/v1/schema/").content == first.content
    assert loaded(first.content) == schema


@pytest.mark.django_db
def test_it_speaks_the_reader_s_language(german: Mapping[str, str]) -> None:
    texts = [Client().get("/api/v1/schema/", headers=headers).content for headers in ({}, german, {})]
    assert texts[0] == texts[2] != texts[1]


def test_every_operation_has_a_name_of_its_own(schema: dict[str, Any]) -> None:
    names = Counter(operation["operationId"] for operation in operations(schema))
    assert [name for name, times in names.items() if times > 1] == []


def test_every_operation_says_what_it_does_and_answers(schema: dict[str, Any]) -> None:
    vague = [operation["operationId"] for operation in operations(schema) if not operation.get("description")]
    assert vague == []
    assert all(operation["responses"] for operation in operations(schema))


def test_a_free_form_object_is_answered_nowhere(schema: dict[str, Any]) -> None:
    answers = [
        (operation["operationId"], answer)
        for operation in operations(schema)
        for answer in operation["responses"].values()
    ]
    contents = [(name, kind) for name, answer in answers for kind in answer.get("content", {}).values()]
    assert [name for name, kind in contents if kind["schema"] == {"type": "object", "additionalProperties": {}}] == []


def test_a_snapshot_is_asked_for_without_a_body(schema: dict[str, Any]) -> None:
    asked = schema["paths"]["/api/v1/projects/{slug}/snapshots/"]["post"]
    assert "requestBody" not in asked
    assert list(asked["responses"]) == ["202"]
    assert refers_to(asked["responses"]["202"], "application/json") == "SnapshotJob"


def test_a_file_to_judge_by_is_sent_as_a_form(schema: dict[str, Any]) -> None:
    sent = schema["paths"]["/api/v1/projects/{slug}/evaluation-jobs/"]["post"]
    assert list(sent["requestBody"]["content"]) == ["multipart/form-data"]
    form = schema["components"]["schemas"][refers_to(sent["requestBody"], "multipart/form-data")]
    assert form["required"] == ["file", "model"]
    assert form["properties"]["file"]["format"] == "binary"
    assert list(sent["responses"]) == ["202"]
    assert refers_to(sent["responses"]["202"], "application/json") == "EvaluationJob"


def refers_to(described: dict[str, Any], media: str) -> str:
    return str(described["content"][media]["schema"]["$ref"]).rpartition("/")[2]


def test_no_description_stands_where_the_schema_does_not_read_it() -> None:
    """Of a generic view it reads what stands at `post`; that calls `create`, whose description nobody reads."""
    halves = [half for half in rest if isinstance(half, URLResolver)]
    views = {vars(pattern.callback)["cls"] for half in halves for pattern in half.url_patterns}
    behind = [
        getattr(view, name, None) for view in views for name in ("create", "list", "retrieve", "update", "destroy")
    ]
    assert [method for method in behind if hasattr(method, "kwargs")] == []
    assert any(hasattr(view.post, "kwargs") for view in views if hasattr(view, "post")), "where it stands otherwise"


# Generated requests ----------------------------------------------------------------------------------------

LEFT_OUT = ("/members/", "/token/")
"""A request that happens to be right would take the caller's own rights away, or be slowed down."""


PEOPLE = ("dave", "alice", "rita", "carol", "root")
"""A stranger, an annotator, a reviewer, a manager and a superuser."""


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_no_request_breaks_the_server(schema: dict[str, Any], project: Project, cast: Cast) -> None:
    """Everybody sends each generated request: making them takes longer than answering them."""
    import schemathesis  # noqa: PLC0415  it takes a second, and every worker of the tests collects this module

    make_task(project)
    rate(project, cast.alice)
    make_member(project, make_user("rita"), role=Role.REVIEWER)
    make_user("root", is_staff=True, is_superuser=True)
    tokens = {who: Token.objects.create(User.objects.get(username=who))[1] for who in PEOPLE}
    headers = [{"Authorization": f"Token {token}", "Host": "localhost"} for token in tokens.values()]
    loaded: Any = schemathesis.openapi.from_dict(schema)
    loaded.app = get_wsgi_application()
    asked = [broken(result.ok(), headers) for result in loaded.get_all_operations()]
    assert [problem for problems in asked for problem in problems] == []


def broken(operation: Any, headers: list[dict[str, str]]) -> list[str]:
    """The requests to one operation that it could not answer; that no worker listens is an answer."""
    unanswered = []

    @settings(
        max_examples=3, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck), database=None
    )
    @given(case=operation.as_strategy())
    def ask(case: Any) -> None:
        if "slug" in case.path_parameters:
            case.path_parameters["slug"] = "talk"
        if isinstance(case.body, dict):
            case.body.pop("slug", None)  # a project by another name would be lost to the requests that follow
        for own in headers:
            answer = case.call(headers=own)
            if answer.status_code >= 500 and answer.status_code != 503:
                request = f"{case.method} {case.formatted_path} {case.query!r} {case.body!r}"
                unanswered.append(f"{request}: {answer.status_code}")

    if operation.method.upper() != "DELETE" and not operation.path.endswith(LEFT_OUT):
        ask()
    return unanswered
