"""Parses JSON bodies into values that can be stored and sent back: no NUL, no lone surrogate, no infinity."""

from math import isfinite
from typing import Any

from rest_framework.exceptions import ParseError, ValidationError
from rest_framework.parsers import JSONParser

from annotator.db.json_values import DEEPEST, NestedTooDeeply, texts_and_numbers
from annotator.db.storable_text import fault_in, shown_name


class StorableJSONParser(JSONParser):
    """Refuses what PostgreSQL or the encoder of the answer would fail on later."""

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        try:
            data = super().parse(stream, media_type, parser_context)
        except RecursionError as deep:
            raise ParseError("JSON parse error - the body is nested too deeply") from deep
        _require_storable(data)
        return data


def _require_storable(data: Any) -> None:
    """Raises ParseError, or ValidationError with the dotted place of what cannot be stored."""
    try:
        for place, value in texts_and_numbers(data):
            if isinstance(value, str) and (fault := fault_in(value)):
                raise ValidationError({shown_name(place): [f"The text holds {fault.what}, which cannot be stored."]})
            if isinstance(value, float) and not isfinite(value):
                raise ValidationError({place: ["The number is too large."]})
    except NestedTooDeeply:
        raise ParseError(f"JSON parse error - the body is nested more than {DEEPEST} levels deep") from None
