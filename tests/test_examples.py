"""The calls that people copy have an example in the OpenAPI schema, and its own schema accepts each."""

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any, NamedTuple

import pytest
from drf_spectacular.generators import SchemaGenerator
from jsonschema import Draft202012Validator
from rest_framework.test import APIClient

from annotator.models import User
from tests.builders import make_rubrics, make_user

COPIED = {
    "token_create",
    "projects_create",
    "projects_invitations_create",
    "projects_webhooks_create",
    "rubrics_create",
    "projects_import_create",
    "projects_next_create",
    "assignments_annotation_update",
    "assignments_skip_create",
    "tasks_adjudication_update",
    "projects_export_jobs_create",
    "projects_training_runs_create",
    "projects_policy_runs_create",
    "score_create",
}
AT_ONCE = (
    "rubrics_create",
    "projects_create",
    "projects_invitations_create",
    "projects_webhooks_create",
    "projects_import_create",
)
"""What a manager sends in this order without waiting for a worker."""


class Shown(NamedTuple):
    call: str
    path: str
    media: str
    schema: dict[str, Any]
    value: Any
    hidden: str
    """What its fields must not be: read only in what is sent, write only in what is answered."""


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    generator: Any = SchemaGenerator
    return dict(generator().get_schema(request=None, public=True))


def shown(document: dict[str, Any]) -> Iterator[Shown]:
    for path, call in ((path, call) for path, calls in document["paths"].items() for call in calls.values()):
        bodies = [(call.get("requestBody", {}), "readOnly")]
        bodies += [(answer, "writeOnly") for answer in call["responses"].values()]
        for body, hidden in bodies:
            for media, content in body.get("content", {}).items():
                for example in content.get("examples", {}).values():
                    yield Shown(call["operationId"], path, media, content["schema"], example["value"], hidden)


def without(hidden: str, components: dict[str, Any]) -> dict[str, Any]:
    """The components without the fields that are only read or only written: such a field is required elsewhere."""
    schemas = deepcopy(components["schemas"])
    for schema in schemas.values():
        fields = schema.get("properties", {})
        gone = {name for name, field in fields.items() if field.get(hidden)}
        schema["required"] = [name for name in schema.get("required", ()) if name not in gone]
        schema["properties"] = {name: field for name, field in fields.items() if name not in gone}
        if fields:
            schema.setdefault("additionalProperties", False)
    return {"schemas": schemas}


def test_the_calls_that_people_copy_have_an_example(document: dict[str, Any]) -> None:
    assert {one.call for one in shown(document)} == COPIED


def test_every_example_fits_its_schema(document: dict[str, Any]) -> None:
    components = {hidden: without(hidden, document["components"]) for hidden in ("readOnly", "writeOnly")}
    faults = [
        f"{one.call}: {'.'.join(map(str, error.absolute_path))}: {error.message}"
        for one in shown(document)
        for error in Draft202012Validator({**one.schema, "components": components[one.hidden]}).iter_errors(one.value)
    ]
    assert faults == []


@pytest.mark.django_db
def test_what_a_manager_copies_works(document: dict[str, Any], as_user: Callable[[User], APIClient]) -> None:
    make_rubrics()
    carol = as_user(make_user("carol", is_staff=True))
    sent = {one.call: one for one in shown(document) if one.hidden == "readOnly"}
    for call in AT_ONCE:
        path, body = sent[call].path.replace("{slug}", "mine"), sent[call].value
        body = {"data": body, "content_type": sent[call].media} if isinstance(body, str) else {"data": body}
        answer = carol.post(path, **body)
        assert answer.status_code in (200, 201), (call, answer.json())
