"""Carries out what follows from a changed password, and asks people to choose one of their own."""

import secrets
from collections.abc import Callable
from hashlib import sha256
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, resolve_url
from django.utils.translation import gettext as _
from django_htmx.http import HttpResponseClientRedirect

from annotator.accounts import tokens
from annotator.infrastructure import audit
from annotator.infrastructure.refusals import Refusal
from annotator.infrastructure.web.middleware import HtmxRequest
from annotator.models import PasswordLink, User

OPEN = {"password", "admin-password", "logout", "admin-logout", "set_language"}
"""The names of the URLs that an account can reach while somebody else's choice is its password."""


class PasswordChanges:
    """A password validator that refuses nothing: Django tells validators whenever a password is stored, at any door."""

    def validate(self, password: str, user: User | None = None) -> None:
        """Accepts any password."""

    def get_help_text(self) -> str:
        return _("The change is recorded in the audit. The password itself is stored only as a hash.")

    def password_changed(self, password: str, user: User) -> None:
        """Records the change and ends the account's tokens and link: who knew the old password may have made them."""
        audit.record("password.set", f"account {user.username}")
        tokens.end_all(user, reason="the password was changed")
        # A link for a new password was for the one that is replaced now.
        PasswordLink.objects.filter(account=user.pk).delete()


class OwnPasswordMiddleware:
    """Redirects people to the password page, from any page, while their password is one that somebody else chose.

    REST is left out, as a script cannot choose a password.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_view(self, request: HtmxRequest, view: Any, *_arguments: Any) -> HttpResponse | None:
        match = request.resolver_match
        if match is None or "api" in match.namespaces or match.url_name in OPEN:
            return None
        if not isinstance(request.user, User) or not request.user.must_change_password:
            return None
        # htmx would put the page behind an ordinary redirect into the fragment's place.
        return HttpResponseClientRedirect(resolve_url("password")) if request.htmx else redirect("password")


BYTES = 24


class UnknownLink(Refusal):
    """No link has this secret."""

    status = 404
    code = "unknown_link"


def new_secret() -> str:
    """Returns a secret that nobody can guess, in characters that need no escaping in an address."""
    return secrets.token_urlsafe(BYTES)


def digest_of(secret: str) -> str:
    """Returns what is stored of a secret, and looked up."""
    # Random bits need no salt and no slow hash. How long the search takes says nothing about the secret.
    return sha256(secret.encode(errors="replace")).hexdigest()
