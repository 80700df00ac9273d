"""Records who did what, and when: an entry for each change by a person, a token or a command, in its transaction.

An entry can never be changed, not even to redact it. So it holds names, numbers and choices, but no text of a task, no
note that somebody wrote about one, no password and no token.
"""

import json
import os
import pwd
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

from celery import Task
from django.core.serializers.json import DjangoJSONEncoder
from django.db.models import Model
from django.http import HttpRequest, HttpResponse

from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.db.statements import Statement
from annotator.infrastructure.web.error_answers import is_rest
from annotator.models import Project, Token, User

JSON = Mapping[str, Any] | list[Any] | str | int | float | None
SECRET = {"password"}
DIGEST_SHOWN = 12
LONGEST_VALUE = 500
"""The number of characters of a changed text that an entry repeats."""


@dataclass(frozen=True)
class Acting:
    """The account and token on whose behalf the code runs, and the door: page, rest, admin, command or worker."""

    via: str
    actor: str = ""
    token: str = ""


# The request itself is kept, not its user: REST authenticates only after the middleware has passed the request on.
_acting: ContextVar[HttpRequest | Acting | None] = ContextVar("acting", default=None)


def record(action: str, subject: str, /, *, project: Project | None = None, **details: JSON) -> None:
    """Adds an entry. An action is a noun and what became of it, like `project.changed`; a subject is like `task t-17`.

    Both are positional only, so that `details` may use their names.
    """
    _ADD.run(**entry(action, subject, project=project, **details))


def entry(action: str, subject: str, /, *, project: Project | None = None, **details: JSON) -> dict[str, Any]:
    """Returns the values of ADD_ENTRY for what `record` records: for a statement that changes what the entry is about.

    Only where the round trip of a statement of its own matters.
    """
    current = acting_now()
    return {
        "entry_at": database_now(),
        "entry_actor": current.actor,
        "entry_via": current.via,
        "entry_token": current.token,
        "entry_project": project.slug if project else "",
        "entry_project_id": project.pk if project else None,
        "entry_action": action,
        "entry_subject": subject[:300],
        "entry_details": json.dumps(details, cls=DjangoJSONEncoder),
    }


ADD_ENTRY = """
INSERT INTO annotator_auditentry (at, actor, via, token, project, project_id, action, subject, details)
VALUES (%(entry_at)s, %(entry_actor)s, %(entry_via)s, %(entry_token)s, %(entry_project)s, %(entry_project_id)s,
    %(entry_action)s, %(entry_subject)s, %(entry_details)s)
"""
_ADD = Statement(ADD_ENTRY)


def acting_now() -> Acting:
    """Returns the sender of the current request, a worker in a Celery task, else the person at the command line."""
    current = _acting.get()
    if not isinstance(current, HttpRequest):
        return current or Acting(via="command", actor=f"os:{_account()}")
    path = current.path_info
    user = getattr(current, "user", None)
    # Django REST framework sets the token on Django's request too, beneath its own.
    token = getattr(current, "auth", None)
    return Acting(
        via="admin" if path.startswith("/admin/") else "rest" if is_rest(path) else "page",
        actor=user.username if isinstance(user, User) else "",
        token=shown(token) if isinstance(token, Token) else "",
    )


def shown(token: Token) -> str:
    """Returns characters that distinguish a token from others and are of no use to log in."""
    return str(token.digest)[:DIGEST_SHOWN]


def _account() -> str:
    """Returns the operating system's name of our account, or its number: in a container there may be no name."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


@contextmanager
def acting(*, via: str, actor: str = "") -> Iterator[None]:
    """Records what happens inside the block as this actor's doing."""
    before = _acting.set(Acting(via=via, actor=actor))
    try:
        yield
    finally:
        _acting.reset(before)


@contextmanager
def by_the_system() -> Iterator[None]:
    """Records what happens inside the block as nobody's doing: it follows from a rule, whoever sent the request."""
    before = _acting.set(replace(acting_now(), actor="", token=""))
    try:
        yield
    finally:
        _acting.reset(before)


# Where people and workers come in --------------------------------------------------------------------------


class ActorMiddleware:
    """Keeps the request at hand, so that its sender can be read when there is something to record."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        before = _acting.set(request)
        try:
            return self.get_response(request)
        finally:
            _acting.reset(before)


class WorkerTask(Task):  # type: ignore[type-arg]
    """The class of all our Celery tasks: it records what a worker does as nobody's doing."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with acting(via="worker"):
            return super().__call__(*args, **kwargs)


# Before and after ------------------------------------------------------------------------------------------


def fields_of(row: Model) -> dict[str, JSON]:
    """Returns a row's fields as an entry may hold them, to be compared before and after a change."""
    fields = (field for field in row._meta.concrete_fields if field.name not in SECRET)
    return {field.name: _shortened(field.value_from_object(row)) for field in fields}


def _shortened(value: Any) -> JSON:
    if isinstance(value, str) and len(value) > LONGEST_VALUE:
        return f"{value[:LONGEST_VALUE]} …"
    return value if isinstance(value, (int, float, dict, list, type(None))) else str(value)


def differences(before: Mapping[str, JSON], after: Mapping[str, JSON]) -> dict[str, JSON]:
    """Returns {field: [before, after]} for the fields that differ."""
    return {name: [before.get(name), value] for name, value in after.items() if before.get(name) != value}
