"""Checks of single values of a row: each returns what can be stored, or says what is wrong with it."""

import json
import re
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from heapq import nsmallest
from math import isfinite
from reprlib import Repr
from typing import Any

from django.conf import settings

from annotator.infrastructure.db.json_values import DEEPEST, NestedTooDeeply, TooManyValues, texts_and_numbers
from annotator.infrastructure.db.storable_text import NUL, fault_in
from annotator.infrastructure.limits import MOST_ANNOTATORS, MOST_RESPONSES, MOST_SEGMENTS
from annotator.models.annotation import LONGEST_ACTIVE_SECONDS, NEITHER_VALID, PREFERENCES, TIE
from annotator.reading.languages import CODE as LANGUAGE_CODE
from annotator.reading.languages import code_of

MOST_VALUES = 10_000
"""The most values that the metadata of one row may hold, at all levels together."""
_WHOLE = re.compile(r"\s*(-?[0-9]{1,9})(?:\.0+)?\s*")
LONGEST_LANGUAGE = 40
EARLIEST = 1990
"""The first year in which anybody can have rated a response; an earlier time is one that a program left empty."""
_REPR = Repr()
_REPR.maxlevel, _REPR.maxstring, _REPR.maxother, _REPR.maxlong = 2, 60, 60, 60


class BadRow(Exception):
    """The row breaks its layout. The message says what to do; `field` names the field, if it is about a single one."""

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.field = field


def storable_text(value: Any, name: str) -> str:
    """A storable, non-empty text, no longer than IMPORT_MAX_TEXT."""
    text = _storable(value, name)
    if len(text) > settings.IMPORT_MAX_TEXT:
        raise BadRow(
            f"{name} has {_too_many(len(text), settings.IMPORT_MAX_TEXT, 'characters', 'IMPORT_MAX_TEXT')}", name
        )
    return text


def _storable(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise BadRow(f"{name} is {shown(value)}: it must be text", name)
    if not value or value.isspace():
        raise BadRow(f"{name} is empty: fill it in, or leave the row out", name)
    if fault := fault_in(value):
        what = "has a NUL byte" if fault.what == NUL else "is not UTF-8"
        raise BadRow(f"{name} {what} at position {fault.position}", name)
    return value


def _too_many(count: int, most: int, what: str, setting: str) -> str:
    return f"{count:,} {what}, and at most {most:,} are accepted: shorten it, or ask the operator to raise {setting}"


def check_messages(count: int) -> None:
    """A conversation has only so many turns."""
    most = settings.IMPORT_MAX_MESSAGES
    if count > most:
        raise BadRow(f"the conversation has {_too_many(count, most, 'messages', 'IMPORT_MAX_MESSAGES')}", "messages")


def check_responses(count: int) -> None:
    """The rating page calls responses by letters."""
    if count > MOST_RESPONSES:
        raise BadRow(
            f"the task has {count:,} responses, and at most {MOST_RESPONSES} are accepted: split it into several tasks",
            "responses",
        )


def check_segments(count: int) -> None:
    """The segments of all responses are rated on one page."""
    if count > MOST_SEGMENTS:
        raise BadRow(
            f"the responses have {count:,} segments together, and at most {MOST_SEGMENTS:,} are accepted: join some of "
            "them, or split the task into several",
            "responses",
        )


def check_raters(count: int, name: str) -> None:
    """Each place of the lists becomes an account and an annotation."""
    if count > MOST_ANNOTATORS:
        raise BadRow(f"{name} has {count:,} raters, and at most {MOST_ANNOTATORS} are accepted", name)


def whole(value: Any) -> Any:
    """Returns a whole number that is written as 4.0 as an integer, and any other value as it is."""
    return int(value) if type(value) is float and value.is_integer() else value


def whole_of_cell(cell: Any) -> Any:
    """Returns the whole number that a cell of a table writes, as in 4, -2 or 4.0; any other cell as it is."""
    if isinstance(cell, str) and (match := _WHOLE.fullmatch(cell)):
        return int(match[1])
    return whole(cell)


def level(value: Any, name: str, levels: int) -> int:
    """A score of an attribute that has so many levels."""
    value = whole(value)
    if type(value) is not int:
        raise BadRow(f"{name} is {shown(value)}: its scores are the whole numbers 0 to {levels - 1}", name)
    if not 0 <= value < levels:
        raise BadRow(f"{name} is {value}: its scores go from 0 to {levels - 1}", name)
    return value


def strength(value: Any, name: str, *, zero: bool) -> int:
    """Returns the strength of a preference. HelpSteer2's consensus may be 0; a single rater's, if ties are allowed."""
    value = whole(value)
    if type(value) is not int or value not in PREFERENCES:
        raise BadRow(f"{name} is {shown(value)}: it must be -3 to 3, or {NEITHER_VALID} for neither valid")
    if value == TIE and not zero:
        raise BadRow(f"{name} is 0: this project allows no ties. A manager can turn on allow_ties")
    return int(value)


def required(values: dict[str, Any], name: str) -> Any:
    if name not in values:
        raise BadRow(f"the field {name} is missing", name)
    return values[name]


def only_known(values: dict[str, Any], allowed: set[str], what: str) -> None:
    if not values.keys() <= allowed:
        unknown = nsmallest(5, (name for name in values if name not in allowed), key=str)
        raise BadRow(
            f"unknown {what} {', '.join(map(shown, unknown))}: known are {', '.join(sorted(allowed))}",
            shown(unknown[0]),
        )


def shown(value: Any) -> str:
    """The beginning of a value as an error repeats it; the whole of a large one would be larger than its row."""
    text = repr(value[:41]) if isinstance(value, str) else _REPR.repr(value)
    return text if len(text) <= 40 else text[:40] + "..."


def metadata_of(value: Any, name: str = "metadata") -> dict[str, Any]:
    """Returns metadata, or the fields that no layout reads, as they can be stored. Raises BadRow."""
    if value == {}:
        return {}
    if not isinstance(value, dict):
        raise BadRow(f"{name} is {shown(value)}: it must be an object", name)
    return value if _is_json(value, name) else _with_null(value)


def moment_of(value: Any) -> datetime | None:
    """Returns when something happened elsewhere, in UTC where no zone is named; None if the value does not say it."""
    try:
        time = value if isinstance(value, datetime) else datetime.fromisoformat(str(value).strip())
    except ValueError:
        return None
    if time.year < EARLIEST:
        return None
    return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)


def seconds_of(value: Any) -> float | None:
    """Returns how long somebody worked; None if the value does not say it, or says more than is stored."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= LONGEST_ACTIVE_SECONDS else None


def from_json_cells(values: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Reads the lists and objects that a table holds as JSON text in the cells of these columns."""
    read = dict(values)
    for name in names:
        cell = read.get(name)
        if isinstance(cell, str) and cell.lstrip()[:1] in ("[", "{"):
            with suppress(ValueError):
                read[name] = json.loads(cell)
    return read


def with_metadata(extra: dict[str, Any], values: dict[str, Any], name: str) -> dict[str, Any]:
    if not extra and "metadata" not in values:
        return {}
    given = values.get("metadata", {})
    return metadata_of({**extra, **given} if isinstance(given, dict) else given, name)


def _is_json(value: dict[str, Any], name: str) -> bool:
    """Refuses what PostgreSQL's jsonb does not take; returns whether every number is one that JSON can say."""
    finite = True
    try:
        for _, item in texts_and_numbers(value, most=MOST_VALUES):
            if isinstance(item, str):
                # Empty texts are fine here; the full stop spares them the check that a field is filled in.
                storable_text(item + ".", name)
            elif isinstance(item, float):
                finite = finite and isfinite(item)
            elif item is not None and not isinstance(item, int):
                raise BadRow(f"{name} holds a {type(item).__name__}: not a JSON value", name)
    except NestedTooDeeply:
        raise BadRow(f"{name} is nested more than {DEEPEST} levels deep", name) from None
    except TooManyValues:
        raise BadRow(f"{name} has more than {MOST_VALUES:,} values: keep large data in a separate file", name) from None
    return finite


def _with_null(value: Any) -> Any:
    """Returns the value with null for NaN and the infinities, which no JSON number is."""
    if isinstance(value, dict):
        return {key: _with_null(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_null(item) for item in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def identifier(value: Any, name: str) -> str:
    value = whole(value)
    if type(value) is int:
        value = str(value)
    if not isinstance(value, str) or len(value) > 200:
        raise BadRow(f"{name} is {shown(value)}: it must be text of at most 200 characters", name)
    return _storable(value, name) if value else ""


def language_as_written(value: Any) -> str:
    """Returns the language's code, or else its words as they are, which notes.py tells and takes out."""
    words = value.strip()[:LONGEST_LANGUAGE] if isinstance(value, str) else ""
    return language_of(words) or words


def language_of(value: Any) -> str:
    """Returns a code such as `de` or `pt-BR` in lower case; empty where the value names no language."""
    code = value.lower() if isinstance(value, str) else ""
    return code if re.fullmatch(LANGUAGE_CODE, code) else code_of(code[:LONGEST_LANGUAGE])
