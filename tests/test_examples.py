"""Every call of the OpenAPI schema has an example that its own schema accepts."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any, NamedTuple

import pytest
from drf_spectacular.generators import SchemaGenerator
from jsonschema import Draft202012Validator

from annotator.api import example_bodies, example_values
from annotator.api.example_bodies import MEDIA
from annotator.api.examples import JSON, operations
from rewards.api import example_values as machine
from rewards.api.examples import examples_of

BINARY = ("application/vnd.apache.parquet", "application/gzip")
"""What cannot be shown as a text."""


class Shown(NamedTuple):
    where: str
    schema: dict[str, Any]
    holder: dict[str, Any]
    hidden: str


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    generator: Any = SchemaGenerator
    return dict(generator().get_schema(request=None, public=True))


def shown(document: dict[str, Any]) -> Iterator[Shown]:
    """Every place that has to have an example."""
    for operation in operations(document):
        name = operation["operationId"]
        for parameter in operation.get("parameters", ()):
            (value,) = parameter["schema"].get("examples") or [parameter.get("example")]
            holder = {} if value is None else {"example": value}
            yield Shown(f"{name} {parameter['name']}", parameter["schema"], holder, "readOnly")
        for media, content in operation.get("requestBody", {}).get("content", {}).items():
            if media not in BINARY:
                yield Shown(f"{name} {media}", content["schema"], content, "readOnly")
        for status, answer in operation["responses"].items():
            for media, content in answer.get("content", {}).items():
                if media in JSON:
                    yield Shown(f"{name} {status}", content["schema"], content, "writeOnly")


def without(hidden: str, components: dict[str, Any]) -> dict[str, Any]:
    """The components without the fields that are only read or only written: such a field is required elsewhere."""
    schemas = deepcopy(components["schemas"])
    for schema in schemas.values():
        gone = {name for name, field in schema.get("properties", {}).items() if field.get(hidden)}
        schema["required"] = [name for name in schema.get("required", ()) if name not in gone]
    return {"schemas": schemas}


def test_every_call_has_an_example(document: dict[str, Any]) -> None:
    assert [one.where for one in shown(document) if "example" not in one.holder] == []


def test_every_example_fits_its_schema(document: dict[str, Any]) -> None:
    components = {hidden: without(hidden, document["components"]) for hidden in ("readOnly", "writeOnly")}
    faults = [
        f"{one.where}: {'.'.join(map(str, error.absolute_path))}: {error.message}"
        for one in shown(document)
        for error in Draft202012Validator({**one.schema, "components": components[one.hidden]}).iter_errors(
            one.holder["example"]
        )
    ]
    assert faults == []


def test_every_field_has_a_value(document: dict[str, Any]) -> None:
    """A new field gets one in example_values.py, in annotator/api or rewards/api."""
    examples = examples_of(deepcopy(document))
    examples.add()
    assert sorted(examples.lacking) == []


def test_the_interactive_page_fills_in_no_filter(document: dict[str, Any]) -> None:
    parameters = [one for operation in operations(document) for one in operation.get("parameters", ())]
    assert {one["in"] for one in parameters if "example" in one and one["name"] != "annotator"} == {"path"}


def test_no_value_is_left_over(document: dict[str, Any]) -> None:
    components = document["components"]["schemas"]
    fields = {f"{name}.{field}" for name, component in components.items() for field in component.get("properties", ())}
    calls = [(call["operationId"], one["name"]) for call in operations(document) for one in call.get("parameters", ())]
    parameters = {place for call, name in calls for place in (f"{call}?{name}", f"?{name}", name)}
    names = {place.rpartition(".")[2] for place in fields}
    assert set(example_values.VALUES | machine.VALUES) - fields - parameters - names == set()
    bodies_of = example_bodies.REQUESTS | machine.REQUESTS | example_bodies.ACCEPTED | machine.ACCEPTED
    assert set(bodies_of) - set(components) == set()
    bodies = [operation.get("requestBody", {}) for operation in operations(document)]
    sent = {media for body in bodies for media in body.get("content", ())}
    assert set(MEDIA) - sent == set()
