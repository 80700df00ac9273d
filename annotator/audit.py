"""Who did what when: one entry for every change by a person, a token or a command, in the transaction of the change.

An entry can never be changed, not even to redact it. So it holds names, numbers and choices: no text of a task, no
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

from annotator.db.clock import database_now
from annotator.db.statements import Statement
from annotator.models import Project, Token, User
from annotator.web.error_answers import is_rest

JSON = Mapping[str, Any] | list[Any] | str | int | float | None
SECRET = {"password"}
DIGEST_SHOWN = 12
LONGEST_VALUE = 500
"""Characters of a changed text that an entry repeats."""


@dataclass(frozen=True)
class Acting:
    """On whose behalf the code runs, and through which door: page, rest, admin, command or worker."""

    via: str
    actor: str = ""
    token: str = ""


# A request stands for whoever it turns out to come from: REST finds that out after the middleware has passed it on.
_acting: ContextVar[HttpRequest | Acting | None] = ContextVar("acting", default=None)


def record(action: str, subject: str, /, *, project: Project | None = None, **details: JSON) -> None:
    """Adds an entry. An action is a noun and what became of it, like `project.changed`; a subject, like `task t-17`."""
    who = acting_now()
    _ADD.run(
        at=database_now(),
        actor=who.actor,
        via=who.via,
        token=who.token,
        project=project.slug if project else "",
        project_id=project.pk if project else None,
        action=action,
        subject=subject[:300],
        details=json.dumps(details, cls=DjangoJSONEncoder),
    )


_ADD = Statement("""
INSERT INTO annotator_auditentry (at, actor, via, token, project, project_id, action, subject, details)
VALUES (%(at)s, %(actor)s, %(via)s, %(token)s, %(project)s, %(project_id)s, %(action)s, %(subject)s, %(details)s)
""")


def acting_now() -> Acting:
    """Whoever came in by a request, a worker for a task of Celery's, else the person at the command line."""
    current = _acting.get()
    if isinstance(current, HttpRequest):
        return _behind(current)
    return current or Acting(via="command", actor=f"os:{_account()}")


def _behind(request: HttpRequest) -> Acting:
    user = getattr(request, "user", None)
    # Django REST framework notes on the request beneath its own whose token came along.
    token = getattr(request, "auth", None)
    return Acting(
        via=_door(request.path_info),
        actor=user.username if isinstance(user, User) else "",
        token=shown(token) if isinstance(token, Token) else "",
    )


def shown(token: Token) -> str:
    """What tells a token from another and is of no use to log in."""
    return str(token.digest)[:DIGEST_SHOWN]


def _door(path: str) -> str:
    if path.startswith("/admin/"):
        return "admin"
    return "rest" if is_rest(path) else "page"


def _account() -> str:
    """The operating system's name for us; in a container there may be none."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


@contextmanager
def acting(*, via: str, actor: str = "") -> Iterator[None]:
    """What is recorded inside is this actor's."""
    before = _acting.set(Acting(via=via, actor=actor))
    try:
        yield
    finally:
        _acting.reset(before)


@contextmanager
def by_the_system() -> Iterator[None]:
    """What is recorded inside follows from a rule, whoever's request it came with."""
    before = _acting.set(replace(acting_now(), actor="", token=""))
    try:
        yield
    finally:
        _acting.reset(before)


# Where people and workers come in --------------------------------------------------------------------------


class ActorMiddleware:
    """Keeps the request at hand; who sent it is read when there is something to record."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        before = _acting.set(request)
        try:
            return self.get_response(request)
        finally:
            _acting.reset(before)


class WorkerTask(Task):  # type: ignore[type-arg]
    """The class of every task of ours: what a worker does is nobody's doing."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with acting(via="worker"):
            return super().__call__(*args, **kwargs)


# Before and after ------------------------------------------------------------------------------------------


def fields_of(row: Model) -> dict[str, JSON]:
    """A row's fields as an entry may hold them, to be compared before and after a change."""
    fields = (field for field in row._meta.concrete_fields if field.name not in SECRET)
    return {field.name: _shortened(field.value_from_object(row)) for field in fields}


def _shortened(value: Any) -> JSON:
    if isinstance(value, str) and len(value) > LONGEST_VALUE:
        return f"{value[:LONGEST_VALUE]} …"
    return value if isinstance(value, (int, float, dict, list, type(None))) else str(value)


def differences(before: Mapping[str, JSON], after: Mapping[str, JSON]) -> dict[str, JSON]:
    """{field: [before, after]} of what is not the same."""
    return {name: [before.get(name), value] for name, value in after.items() if before.get(name) != value}
