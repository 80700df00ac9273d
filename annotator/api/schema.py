"""Describes in the OpenAPI schema what all calls have in common: tokens, and headers that a kind of call takes."""

from functools import lru_cache
from typing import Any

from django.utils import translation
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.openapi import AutoSchema

from annotator.api.authentication import HOW, TokenAsPassword, TokenAuthentication


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """Describes the Authorization header; the text of the description also names X-Api-Key."""

    target_class = TokenAuthentication
    name = "token"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, str]:
        return {"type": "apiKey", "in": "header", "name": "Authorization", "description": HOW}


class PasswordScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """Describes HTTP Basic. The address also takes the headers of TokenScheme."""

    target_class = TokenAsPassword
    name = "token_as_password"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, str]:
        return {"type": "http", "scheme": "basic"}


def allow_several(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Turns every `oneOf` of the components into `anyOf`; drf-spectacular calls this when it has made the schema."""
    # A manager's project has all fields that an annotator's has, and null is JSON too: such a value is never "one of".
    _several(result["components"]["schemas"])
    return result


def _several(node: Any) -> None:
    if isinstance(node, dict) and isinstance(node.get("oneOf"), list):
        node["anyOf"] = node.pop("oneOf")
    for inner in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        _several(inner)


class KeptSchema(SchemaGenerator):
    """Returns the schema that the process has made before: it is the same for everybody, and making it takes long."""

    def get_schema(self, request: Any = None, public: bool = False) -> Any:
        return _schema(translation.get_language(), self.api_version)


@lru_cache(maxsize=8)
def _schema(_language: str | None, version: str | None) -> Any:
    # Where a view would look at the caller, there is none; the command `spectacular` does the same.
    return SchemaGenerator(api_version=version).get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
