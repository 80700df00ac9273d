"""Describes our tokens in the OpenAPI schema. Importing this module registers the descriptions."""

from drf_spectacular.extensions import OpenApiAuthenticationExtension
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
    name = "token as password"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, str]:
        return {"type": "http", "scheme": "basic"}
