"""Answers read as Django REST framework's own renderer would write them."""

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from django.utils.translation import gettext_lazy
from rest_framework.renderers import JSONRenderer
from rest_framework.serializers import Serializer
from rest_framework.utils.serializer_helpers import ReturnDict

from annotator.api.json_bodies import Renderer
from annotator.models import Task, User

DATA = [
    None,
    {},
    [],
    "a\u2028b\u2029c\u0085\x00<é😀",
    {"at": datetime(2026, 1, 2, 3, 4, 5, 678901, UTC), "whole": datetime(2026, 1, 2, tzinfo=UTC)},
    [datetime(2026, 1, 2, tzinfo=timezone(timedelta(hours=2))), date(2026, 1, 2), timedelta(seconds=90)],
    {"state": Task.State.OPEN, "decimal": Decimal("1.10"), "id": UUID(int=5), "lazy": gettext_lazy("Name")},
    [0.1, -0.0, 2**63, 2**64, -(2**63), 10**30, True, None],
    {1: "a key that is no text", "two": (1, 2)},
    ReturnDict({"a": [ReturnDict({"b": 1}, serializer=Serializer())]}, serializer=Serializer()),
]


@pytest.mark.parametrize("data", DATA)
def test_an_answer_is_written_as_the_framework_would(data: Any) -> None:
    assert Renderer().render(data) == JSONRenderer().render(data)


def test_an_answer_can_be_indented() -> None:
    asked = "application/json; indent=2"
    assert Renderer().render({"a": 1}, asked) == JSONRenderer().render({"a": 1}, asked) != Renderer().render({"a": 1})


@pytest.mark.django_db
def test_rows_of_a_query_are_a_list() -> None:
    rows = User.objects.order_by("pk").values("username")
    assert Renderer().render(rows) == JSONRenderer().render(rows)


def test_what_cannot_be_written_is_an_error() -> None:
    with pytest.raises(TypeError):
        Renderer().render({"value": object()})
