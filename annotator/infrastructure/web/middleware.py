"""What every request passes: storable texts, headers, and answers while the database is away.

Two errors that come before or after the middleware are answered by `api.errors.server_error`: Django shows no
middleware the errors of another one.
"""

import logging
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode, urlsplit

from django.conf import settings
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import resolve_url
from django.utils.translation import gettext as _
from django_htmx.http import HttpResponseClientRedirect
from django_htmx.middleware import HtmxDetails

from annotator.infrastructure.db.storable_text import UnstorableText, require_storable, require_storable_form
from annotator.infrastructure.web.error_answers import error_answer, is_rest

API = "/api/v1/"
HEALTH = f"{API}health/"
PROBED = (HEALTH, "/metrics")
"""The beginnings of addresses that machines ask for."""
_MAY_BE_KEPT = (f"{API}schema/", f"{API}docs/")
# Annotators' pages show strangers' texts, so nothing inline runs there, and no other host is called.
STRICT = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
# The admin's theme evaluates attributes (Alpine) and sets styles; the API's documentation starts by an inline script.
STAFF = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; font-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
LOOSER = ("/admin/", "/api/v1/docs/")


class ContentSecurityPolicyMiddleware:
    """Sets the Content-Security-Policy unless a view has set its own."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        response.headers.setdefault("Content-Security-Policy", STAFF if request.path.startswith(LOOSER) else STRICT)
        return response


class HealthHostMiddleware:
    """Answers probes under any host name: load balancers, kubelets and Prometheus use addresses that nobody lists."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        # Django answers 400 to any host that is not in ALLOWED_HOSTS.
        if request.path.startswith(PROBED):
            request.META["HTTP_HOST"] = settings.ALLOWED_HOSTS[0]
        return self.get_response(request)


class NoStoreMiddleware:
    """Keeps browsers and proxies from storing pages and REST's answers."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if not request.path.startswith((settings.STATIC_URL, *_MAY_BE_KEPT)):
            response.headers.setdefault("Cache-Control", "no-store")
        return response


class HtmxRequest(HttpRequest):
    """A request with the attribute that django-htmx's middleware adds."""

    htmx: HtmxDetails


class WholeLoginPageMiddleware:
    """Sends a logged-out htmx request to the login page, and from there back to the page it came from."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HtmxRequest) -> HttpResponse:
        response = self.get_response(request)
        login = resolve_url(settings.LOGIN_URL)
        if not request.htmx or response.status_code != 302 or urlsplit(response["Location"]).path != login:
            return response
        back = urlsplit(request.htmx.current_url or "/").path
        return HttpResponseClientRedirect(f"{login}?{urlencode({'next': back})}")


RETRY_AFTER_SECONDS = 2
_log = logging.getLogger(__name__)


class DatabaseAwayMiddleware:
    """Answers 503 for any view that loses its database."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        return database_away_answer(request, exception)


def database_away_answer(request: HttpRequest, error: BaseException | None) -> HttpResponse | None:
    """The answer to an error which means that the database is away; None for any other error."""
    if not isinstance(error, OperationalError | InterfaceError):
        return None
    _log.error("The database did not answer %s %s: %s", request.method, request.path, error)
    detail = _("The database is not available right now. Everything you saved is kept. Try again in a few seconds.")
    headers = {"Retry-After": str(RETRY_AFTER_SECONDS)}
    return error_answer(request, detail, code="database_away", status=503, headers=headers)


class StorableRequestMiddleware:
    """Refuses with 400 what PostgreSQL cannot store: NUL in a path, a query, a form field, a cookie or a header.

    It comes after the middleware that checks CSRF tokens, which has read the form already.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        try:
            require_storable(request.path_info, "address")
            if "%00" in request.META.get("QUERY_STRING", "") or "\0" in request.META.get("QUERY_STRING", ""):
                require_storable_form(dict(request.GET.lists()))
            for name, value in request.COOKIES.items():
                require_storable(name + value, "cookie")
            for name, value in request.META.items():
                if name.startswith("HTTP_") and "\0" in value:
                    require_storable(value, name.removeprefix("HTTP_").replace("_", "-").lower())
        except UnstorableText as refused:
            return _answer(request, refused)
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, view: Callable[..., HttpResponse], args: Any, kwargs: Any
    ) -> HttpResponse | None:
        if request.method != "POST" or is_rest(request.path):
            return None
        try:
            require_storable_form(dict(request.POST.lists()))
        except UnstorableText as refused:
            return _answer(request, refused)
        return None


def _answer(request: HttpRequest, refused: UnstorableText) -> HttpResponse:
    return error_answer(request, str(refused), code=refused.code, status=refused.status, errors=refused.errors)
