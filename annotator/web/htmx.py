"""Keeps htmx from inserting the login page into a part of another page."""

from collections.abc import Callable
from urllib.parse import urlencode, urlsplit

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import resolve_url
from django_htmx.http import HttpResponseClientRedirect
from django_htmx.middleware import HtmxDetails


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
