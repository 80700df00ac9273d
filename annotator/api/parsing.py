"""JSON bodies that every layer below can store and answer with: no NUL, no half characters, no infinity."""

from math import isfinite
from typing import Any

from rest_framework.exceptions import ParseError, ValidationError
from rest_framework.parsers import JSONParser

from annotator.db.storable_text import fault_in, shown_name

DEEPEST = 50
"""Levels of nesting. Deeper ones exhaust the stack of whoever reads them next."""


class StorableJSONParser(JSONParser):
    """Refuses at the door what PostgreSQL or the answer's encoder would fail on later."""

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        try:
            data = super().parse(stream, media_type, parser_context)
        except RecursionError as deep:
            raise ParseError("JSON parse error - the body is nested too deeply") from deep
        _require_storable(data, "", DEEPEST)
        return data


def _require_storable(value: Any, place: str, levels: int) -> None:
    """Raises ParseError or ValidationError, the latter with the dotted place of what is wrong."""
    if not levels:
        raise ParseError(f"JSON parse error - the body is nested more than {DEEPEST} levels deep")
    if isinstance(value, str):
        _require_text(value, place)
    elif isinstance(value, float) and not isfinite(value):
        raise ValidationError({place: ["The number is too large."]})
    elif isinstance(value, dict):
        for key, item in value.items():
            _require_text(key, place)
            _require_storable(item, f"{place}.{key}" if place else key, levels - 1)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            _require_storable(item, f"{place}.{number}" if place else str(number), levels - 1)


def _require_text(text: str, place: str) -> None:
    if fault := fault_in(text):
        raise ValidationError({shown_name(place): [f"The text holds {fault.what}, which cannot be stored."]})
