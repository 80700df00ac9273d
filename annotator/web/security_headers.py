"""Sets headers: a Content-Security-Policy for every page, and no caching of anything but files that all share.

Also lets health probes ask by any host name.
"""

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse

API = "/api/v1/"
HEALTH = f"{API}health/"
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
    """Answers health checks under any host name: load balancers and kubelets use addresses that no operator lists."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        # Django answers 400 to any host that is not in ALLOWED_HOSTS.
        if request.path.startswith(HEALTH):
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
