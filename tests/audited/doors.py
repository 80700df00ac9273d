"""Every door through which somebody may change something, found by looking, not by a list."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib import admin
from django.http import HttpRequest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from annotator.models import User

CHANGING = {"post", "put", "patch", "delete"}
ADMINS_OWN = ("_changelist", "_add", "_history", "_delete", "_change")


def doors(client: Client, user: User) -> set[str]:
    """As `rest project patch`, `page skip`, `admin task change`, `command recount`. The user is let in."""
    return {*_rest(), *_pages(client, user), *_admin(), *_commands()}


def _patterns(resolver: URLResolver, place: str = "") -> Iterator[tuple[str, URLPattern]]:
    for url_pattern in resolver.url_patterns:
        below = place + str(url_pattern.pattern)
        if isinstance(url_pattern, URLResolver):
            yield from _patterns(url_pattern, below)
        else:
            yield below, url_pattern


def _rest() -> Iterator[str]:
    for place, pattern in _patterns(get_resolver()):
        if place.startswith("api/v1/"):
            view: Any = vars(pattern.callback)["cls"]
            yield from (
                f"rest {pattern.name} {verb}"
                for verb in CHANGING
                if verb in dir(view) and verb in view.http_method_names
            )


def _pages(client: Client, user: User) -> Iterator[str]:
    """Pages that answer a POST, be it with 404. Of those below admin/ only our own: the rest is the admin's forms."""
    for place, pattern in _patterns(get_resolver()):
        ours = pattern.lookup_str.startswith(("annotator.pages.", "rewards.admin.urls."))
        if not place.startswith("api/v1/") and (ours or not place.startswith("admin/")):
            address = re.sub(r"<(\w+):\w+>", lambda match: "0" if match[1] in ("int", "task") else "none", place)
            client.force_login(user)
            if client.post(f"/{address}").status_code != 405:
                yield f"page {pattern.name}"


def _admin() -> Iterator[str]:
    request = HttpRequest()
    request.user = User(username="root", is_superuser=True, is_staff=True)
    for model, model_admin in admin.site._registry.items():
        name = model._meta.model_name
        yield from (
            f"admin {name} {verb}"
            for verb, may in model_admin.get_model_perms(request).items()
            if may and verb != "view"
        )
        yield from (f"admin {name} {action}" for action in model_admin.get_actions(request))
        own = (url.name or "" for url in model_admin.get_urls())
        yield from (f"admin {url}" for url in own if url and not url.endswith(ADMINS_OWN))


def _commands() -> Iterator[str]:
    for half in ("annotator", "rewards"):
        folder = Path(settings.BASE_DIR) / half / "management" / "commands"
        yield from (f"command {file.stem}" for file in folder.glob("[a-z]*.py"))
