"""How the OpenAPI schema describes our tokens. Importing this registers it."""

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema

from annotator.api.authentication import HOW, TokenAsPassword, TokenAuthentication


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """The Authorization header; X-Api-Key is said in the text."""

    target_class = TokenAuthentication
    name = "token"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, str]:
        return {"type": "apiKey", "in": "header", "name": "Authorization", "description": HOW}


class PasswordScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """The header will do as well."""

    target_class = TokenAsPassword
    name = "token as password"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, str]:
        return {"type": "http", "scheme": "basic"}
