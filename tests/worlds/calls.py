"""Asks REST for every list and every single row of a project, and compares the answers with the OpenAPI schema."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from django.test import Client
from drf_spectacular.generators import SchemaGenerator
from jsonschema import Draft202012Validator

_LISTS: Mapping[str, tuple[str, str]] = {
    "/api/v1/evaluations/{id}/": ("/api/v1/evaluations/", "id"),
    "/api/v1/policies/{id}/": ("/api/v1/policies/", "id"),
    "/api/v1/reward-models/{id}/": ("/api/v1/reward-models/", "id"),
    "/api/v1/training-runs/{id}/": ("/api/v1/projects/{slug}/training-runs/", "id"),
    "/api/v1/policy-runs/{id}/": ("/api/v1/projects/{slug}/policy-runs/", "id"),
    "/api/v1/review/{task_id}/": ("/api/v1/projects/{slug}/tasks/", "id"),
    "/api/v1/tasks/{task_id}/segments/": ("/api/v1/projects/{slug}/tasks/", "id"),
    "/api/v1/projects/{slug}/members/{username}/": ("/api/v1/projects/{slug}/members/", "username"),
}
"""For the address of a single row, the list that it is in, and the field that the address has."""
_REFUSED = (403, 404, 409, 503)
"""What a reader may be told who may not see something, or where there is none; each is in the schema."""


@cache
def _schema() -> dict[str, Any]:
    generator: Any = SchemaGenerator
    return dict(generator().get_schema(request=None, public=True))


@cache
def _validator(path: str, status: int) -> Draft202012Validator | None:
    answers = _schema()["paths"][path]["get"]["responses"]
    content = answers.get(str(status), {}).get("content", {}).get("application/json")
    return Draft202012Validator({**content["schema"], "components": _schema()["components"]}) if content else None


def faults(client: Client, slug: str) -> Iterator[str]:
    """Yields what is wrong with the answers that the reader gets."""
    for path, operations in _schema()["paths"].items():
        if "get" not in operations or path.startswith("/api/v1/health/"):
            continue
        if set(re.findall(r"{(\w+)}", path)) <= {"slug"}:
            yield from _fault(client, path, path.format(slug=slug))
        elif path in _LISTS:
            where, field = _LISTS[path]
            answer = client.get(where.format(slug=slug))
            for row in answer.json()["results"][:2] if answer.status_code == 200 else ():
                name = path.replace("{slug}", slug)
                yield from _fault(client, path, re.sub(r"{\w+}", str(row[field]), name))


def _fault(client: Client, path: str, address: str) -> Iterator[str]:
    try:
        answer = client.get(address)
        if answer.streaming:
            b"".join(answer)
            return
    except Exception as error:  # noqa: BLE001  whatever a call raises is what is looked for
        yield f"{address}: {type(error).__name__}: {error}"
        return
    if answer.status_code != 200 and answer.status_code not in _REFUSED:
        yield f"{address}: {answer.status_code} {answer.content[:200]!r}"
    elif validator := _validator(path, answer.status_code):
        yield from (f"{address}: {_described(error)}" for error in validator.iter_errors(answer.json()))


def _described(error: Any) -> str:
    return f"{'.'.join(map(str, error.absolute_path))}: {error.message[:200]}"
