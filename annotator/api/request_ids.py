"""The field `request_id`: a creating call that is sent again with it is answered with what the first one has made."""

from collections.abc import Callable
from typing import TypeVar
from uuid import UUID

from django.db import IntegrityError
from django.db.models import Model, QuerySet
from rest_framework import serializers

M = TypeVar("M", bound=Model)


class RequestIdField(serializers.UUIDField):
    """A UUID that the caller makes up for each new request."""

    def __init__(self) -> None:
        text = "a UUID that you make up: sent again with it, the call answers with what the first one has made"
        super().__init__(default=None, allow_null=True, help_text=text)


def earlier_or_new(rows: QuerySet[M], request_id: UUID | None, make: Callable[[], M]) -> M:
    """Returns the row among `rows` that was made for this request, or makes it; without an id it makes one."""
    if request_id is None:
        return make()
    try:
        return rows.filter(request_id=request_id).first() or make()
    except IntegrityError:
        # The same call at the same moment was faster, unless another constraint has been met.
        row = rows.filter(request_id=request_id).first()
        if row is None:
            raise
        return row
