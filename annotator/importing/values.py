"""Checks of single values of a row: each returns what can be stored, or says what is wrong with it."""

from math import isfinite
from typing import Any

DEEPEST = 50
"""Levels of metadata. Deeper ones exhaust the stack of whoever reads them next."""


class BadRow(Exception):
    """The row breaks its layout; the message names the field."""


def storable_text(value: Any, name: str) -> str:
    """A storable, non-empty text."""
    if not isinstance(value, str):
        raise BadRow(f"{name} is {shown(value)}: it must be text")
    if not value.strip():
        raise BadRow(f"{name} is empty")
    if "\x00" in value:
        raise BadRow(f"{name} has a NUL byte at position {value.index(chr(0)) + 1}")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as wrong:
        raise BadRow(f"{name} is not UTF-8 at position {wrong.start + 1}") from wrong
    return value


def level(value: Any, name: str) -> int:
    if type(value) is not int:
        raise BadRow(f"{name} is {shown(value)}: scores are the whole numbers 0 to 4")
    if not 0 <= value <= 4:
        raise BadRow(f"{name} is {value}: scores go from 0 to 4")
    return value


def required(values: dict[str, Any], name: str) -> Any:
    if name not in values:
        raise BadRow(f"the field {name} is missing")
    return values[name]


def only_known(values: dict[str, Any], allowed: set[str], what: str) -> None:
    if unknown := sorted(set(values) - allowed, key=str):
        raise BadRow(f"unknown {what} {', '.join(map(shown, unknown[:5]))}: known are {', '.join(sorted(allowed))}")


def shown(value: Any) -> str:
    return repr(value) if len(repr(value)) <= 40 else repr(value)[:40] + "..."


def checked_metadata(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise BadRow(f"{name} is {shown(value)}: it must be an object")
    _check_tree(value, name, DEEPEST)
    return value


def with_metadata(extra: dict[str, Any], values: dict[str, Any], name: str) -> dict[str, Any]:
    given = values.get("metadata", {})
    return checked_metadata({**extra, **given} if isinstance(given, dict) else given, name)


def _check_tree(value: Any, name: str, levels: int) -> None:
    """PostgreSQL's JSONB refuses NUL and lone surrogates anywhere inside, and numbers that are none."""
    if not levels:
        raise BadRow(f"{name} is nested more than {DEEPEST} levels deep")
    if isinstance(value, str):
        storable_text(value + ".", name)
    elif isinstance(value, dict):
        for key, each in value.items():
            _check_tree(key, name, levels - 1)
            _check_tree(each, name, levels - 1)
    elif isinstance(value, list):
        for each in value:
            _check_tree(each, name, levels - 1)
    elif isinstance(value, float) and not isfinite(value):
        raise BadRow(f"{name} holds {value}: not a JSON number")
    elif value is not None and not isinstance(value, int | float):
        raise BadRow(f"{name} holds a {type(value).__name__}: not a JSON value")


def identifier(value: Any, name: str) -> str:
    if type(value) is int:
        value = str(value)
    if not isinstance(value, str) or len(value) > 200:
        raise BadRow(f"{name} is {shown(value)}: it must be text of at most 200 characters")
    return storable_text(value, name) if value else ""
