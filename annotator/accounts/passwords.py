"""Passwords: what follows from a change, and the page that asks for one of one's own."""

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, resolve_url
from django.utils.translation import gettext as _
from django_htmx.http import HttpResponseClientRedirect

from annotator import audit
from annotator.accounts import tokens
from annotator.models import User
from annotator.web.htmx import HtmxRequest

OPEN = {"password", "admin-password", "logout", "admin-logout", "set_language"}
"""What an account reaches whose password somebody else chose."""


class PasswordChanges:
    """Django tells its password validators whenever a password was stored, through whatever door."""

    def validate(self, password: str, user: User | None = None) -> None:
        """Any password will do here."""

    def get_help_text(self) -> str:
        return _("The change is recorded in the audit. The password itself is stored only as a hash.")

    def password_changed(self, password: str, user: User) -> None:
        """Tokens may have been made by whoever knew the old one."""
        audit.record("password.set", f"account {user.username}")
        tokens.end_all(user, because="the password was changed")


class OwnPasswordMiddleware:
    """Leads to the password page wherever somebody goes with a password that somebody else chose for them.

    REST is left out: a script cannot choose a password.
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
        return HttpResponseClientRedirect(resolve_url("password")) if request.htmx else redirect("password")
