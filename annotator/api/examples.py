"""Adds an example to every call of the OpenAPI schema, made of known values along the schema of its body.

A field of which no value is known gets one of its type; tests/test_examples.py names such fields.
"""

from collections.abc import Iterator
from typing import Any

from annotator.api.example_bodies import MEDIA

Schema = dict[str, Any]
METHODS = ("get", "post", "put", "patch", "delete")
JSON = ("application/json", "multipart/form-data")
_OF_TYPE: dict[str, Any] = {"string": "", "integer": 0, "number": 0.0, "boolean": False, "array": [], "object": {}}
_PLACE = "#/components/schemas/"


def allow_several(node: Any) -> None:
    """Turns every `oneOf` into `anyOf`."""
    # A manager's project has all fields that an annotator's has, and null is JSON too: such a value is never "one of".
    if isinstance(node, dict) and isinstance(node.get("oneOf"), list):
        node["anyOf"] = node.pop("oneOf")
    for inner in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        allow_several(inner)


class Examples:
    """Makes the examples of a schema. `lacking` holds the fields and parameters of which no value is known."""

    def __init__(self, document: Schema, *, values: Schema, requests: Schema, accepted: Schema) -> None:
        self._document, self._values, self._requests, self._accepted = document, values, requests, accepted
        self._components: Schema = document["components"]["schemas"]
        self.lacking: set[str] = set()

    def add(self) -> None:
        """Adds an example to each parameter, request and answer that can have one."""
        for operation in operations(self._document):
            for media, content in operation.get("requestBody", {}).get("content", {}).items():
                self._add_body(media, content, is_sent=True)
            for status, answer in operation["responses"].items():
                for media, content in answer.get("content", {}).items():
                    self._add_body(media, content, is_sent=False)
                    if status == "202":
                        content["example"] |= self._not_done_yet(content["schema"])
            for parameter in operation.get("parameters", ()):
                self._add_value(parameter, operation)

    def _add_body(self, media: str, content: Schema, *, is_sent: bool) -> None:
        if is_sent and media in MEDIA and "$ref" not in content["schema"]:
            content["example"] = MEDIA[media]
        elif media in JSON:
            content["example"] = self._value(content["schema"], "", is_sent=is_sent)

    def _not_done_yet(self, schema: Schema) -> Schema:
        name = schema["$ref"].removeprefix(_PLACE)
        done = {"finished_at": None} if "finished_at" in self._components[name]["properties"] else {}
        return {**done, **self._accepted.get(name, {})}

    def _add_value(self, parameter: Schema, operation: Schema) -> None:
        value = self._parameter(parameter, operation)
        if parameter.get("required"):
            parameter["example"] = value
        else:
            # The interactive page fills in what stands at `example`: whoever tries a call would send every filter.
            parameter["schema"] = {**parameter["schema"], "examples": [value]}

    def _parameter(self, parameter: Schema, operation: Schema) -> Any:
        call, name, schema = operation["operationId"], parameter["name"], parameter["schema"]
        if name == "fields" and (fields := _answered_fields(operation)):
            return ",".join(fields[:2])
        known = [value for key in (f"{call}?{name}", f"?{name}", name) if (value := self._values.get(key)) is not None]
        fitting = [value for value in known if self._fits(value, schema)]
        return fitting[0] if fitting else self._plain(schema, f"?{name}")

    def _value(self, schema: Schema, path: str, *, is_sent: bool) -> Any:
        """Returns an example for the schema; `path` names the field, as among the values."""
        if "." in path and path in self._values:
            return self._values[path]
        if "$ref" in schema:
            return self._component(schema["$ref"].removeprefix(_PLACE), path, is_sent=is_sent)
        for several in ("anyOf", "allOf"):
            # Of several the first: the whole rather than null, a manager's view rather than an annotator's.
            if several in schema:
                return self._value(schema[several][0], path, is_sent=is_sent)
        if "properties" in schema:
            return self._object(schema, "", is_sent=is_sent)
        if "array" in schema.get("type", ()) and "$ref" in schema.get("items", {}):
            return [self._value(schema["items"], path, is_sent=is_sent)]
        inner = schema.get("additionalProperties")
        if isinstance(inner, dict) and "$ref" in inner:
            return {self._key(path): self._value(inner, path, is_sent=is_sent)}
        return self._named(schema, path)

    def _component(self, name: str, path: str, *, is_sent: bool) -> Any:
        if is_sent and name in self._requests:
            return self._requests[name]
        component = self._components[name]
        if "properties" in component:
            return self._object(component, name, is_sent=is_sent)
        return self._value(component, path, is_sent=is_sent) if "anyOf" in component else self._named(component, path)

    def _object(self, schema: Schema, component: str, *, is_sent: bool) -> Schema:
        hidden = "readOnly" if is_sent else "writeOnly"
        return {
            name: self._value(field, f"{component}.{name}", is_sent=is_sent)
            for name, field in schema["properties"].items()
            if not field.get(hidden)
        }

    def _named(self, schema: Schema, path: str) -> Any:
        value = self._values.get(path.rpartition(".")[2])
        if value is not None and self._fits(value, schema):
            return value
        if value is None and path.rpartition(".")[2] in self._values and "null" in schema.get("type", ()):
            return None
        return self._plain(schema, path)

    def _plain(self, schema: Schema, path: str) -> Any:
        """Returns the first choice, or false, or a value of the type, which is then lacking a better one."""
        if "$ref" in schema:
            schema = self._components[schema["$ref"].removeprefix(_PLACE)]
        if "enum" in schema:
            return schema["enum"][0]
        kind = schema.get("type", "object")
        kind = kind[0] if isinstance(kind, list) else kind
        if kind != "boolean":
            self.lacking.add(path)
        return _OF_TYPE[kind]

    def _fits(self, value: Any, schema: Schema) -> bool:
        if "$ref" in schema:
            schema = self._components[schema["$ref"].removeprefix(_PLACE)]
        if "enum" in schema:
            return value in schema["enum"]
        kinds = schema.get("type", _kind(value))
        return _kind(value) in kinds or (_kind(value) == "integer" and "number" in kinds)

    def _key(self, path: str) -> str:
        return "train" if path.endswith(".queues") else "helpfulness"


def _answered_fields(operation: Schema) -> list[str]:
    answer = operation["responses"].get("200", {}).get("content", {}).get("application/json", {}).get("example", {})
    row = answer["results"][0] if "next" in answer else answer
    return list(row) if isinstance(row, dict) else []


def operations(document: Schema) -> Iterator[Schema]:
    """Yields every call of the schema."""
    for path in document["paths"].values():
        yield from (operation for method, operation in path.items() if method in METHODS)


def _kind(value: Any) -> str:
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    return kinds[type(value)]
