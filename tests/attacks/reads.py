"""What an answer has looked at of what came with its request: of what it has not, every other value is answered alike.

A walk over all addresses sends one hostile value first, and the others only where one can tell.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.http import QueryDict
from django.test.client import FakePayload

from annotator.infrastructure.web.middleware import StorableRequestMiddleware

BY_NAME = ("__getitem__", "get", "getlist", "__contains__")
NAMES_ALONE = ("__iter__", "keys")
AS_A_WHOLE = ("values", "items", "lists", "dict", "urlencode")


@dataclass
class Reads:
    """Since `clear`: names asked of a query or a form, whether its names or its values were gone through, and whether a
    body was read."""

    names: set[str] = field(default_factory=set)
    all_names: bool = False
    whole: bool = False
    body: bool = False

    def clear(self) -> None:
        self.names.clear()
        self.all_names = self.whole = self.body = False

    @property
    def any_value(self) -> bool:
        return bool(self.names) or self.whole


def watched_reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    """Of every request of the test; `clear` belongs before each."""
    noted = Reads()
    for name in BY_NAME:
        monkeypatch.setattr(QueryDict, name, _by_name(getattr(QueryDict, name), noted))
    for name in NAMES_ALONE:
        monkeypatch.setattr(QueryDict, name, _noting(getattr(QueryDict, name), noted, "all_names"))
    for name in AS_A_WHOLE:
        monkeypatch.setattr(QueryDict, name, _noting(getattr(QueryDict, name), noted, "whole"))
    for name in ("read", "readline"):
        monkeypatch.setattr(FakePayload, name, _noting(getattr(FakePayload, name), noted, "body"))
    look = StorableRequestMiddleware.process_view

    def look_at_all(*given: Any) -> Any:
        """It reads every form for what cannot be stored, before the view: that is no reading of a value."""
        before = noted.whole
        answer = look(*given)
        noted.whole = before
        return answer

    monkeypatch.setattr(StorableRequestMiddleware, "process_view", look_at_all)
    return noted


def _by_name(method: Callable[..., Any], noted: Reads) -> Callable[..., Any]:
    def watched(query: QueryDict, name: str, *more: Any) -> Any:
        if name and not query._mutable:  # while it is being made, it asks for what it has
            noted.names.add(name)
        return method(query, name, *more)

    return watched


def _noting(method: Callable[..., Any], noted: Reads, what: str) -> Callable[..., Any]:
    def watched(this: Any, *given: Any, **named: Any) -> Any:
        if not getattr(this, "_mutable", False):
            setattr(noted, what, True)
        return method(this, *given, **named)

    return watched
