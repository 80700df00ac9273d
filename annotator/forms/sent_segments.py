"""Reads the answers about segments, which the page's script sends as one field for each response.

The field `scored-segments-N`, where N is the response's public number, holds JSON: the keys of the `aspects`, and in
`rows`, by the index of a segment, a character for each of them. A digit is a level, a dash an aspect that does not
apply, a space an answer that was taken back, and a full stop says nothing. Without scripts each cell is a field of its
own, which has the name that is used from here on.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from django.core.exceptions import BadRequest
from django.http import QueryDict

from annotator.limits import MOST_ATTRIBUTES

PREFIX = "scored-segments-"
UNSAID = "."
_OURS = ("csrfmiddlewaretoken", "changed")
_KEY = re.compile(r"[a-z][a-z0-9_]*")


def by_cell(sent: QueryDict) -> QueryDict:
    """Returns the form with a field for each cell. What `changed` names of the fields for responses, it names by cell.

    Raises:
        BadRequest: such a field holds something else than the page writes.
    """
    folded = [name for name in sent if name.startswith(PREFIX)]
    if not folded:
        return sent
    form = sent.copy()
    changed = [name for name in form.getlist("changed") if name not in folded]
    for name in folded:
        # A field with several values: the last one counts, as for all others.
        cells = dict(_cells(name.removeprefix(PREFIX), str(form.pop(name)[-1])))
        for cell, value in cells.items():
            form[cell] = value
        changed += cells if name in sent.getlist("changed") else []
    form.setlist("changed", changed)
    return form


def half_filled(sent: QueryDict) -> tuple[dict[str, Any], list[str]]:
    """Returns a half-filled form as drafts keep it, and the names of the fields that the page says have changed.

    A changed field that was not sent has no answer any more. Raises BadRequest as `by_cell` does.
    """
    form = by_cell(sent)
    changed = form.getlist("changed")
    # Check boxes alone have several values.
    values = {name: values if _is_boxes(name) else values[-1] for name, values in form.lists() if name not in _OURS}
    return {name: [] if _is_boxes(name) else "" for name in changed} | values, changed


def _is_boxes(name: str) -> bool:
    return name.startswith("checks-")


def _cells(response: str, text: str) -> Iterator[tuple[str, str]]:
    aspects, rows = _read(text)
    for index, row in rows.items():
        for aspect, value in zip(aspects, row, strict=False):
            if value != UNSAID:
                yield f"seg-{response}-{index}-{aspect}", value.strip()


def _read(text: str) -> tuple[list[str], dict[str, str]]:
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as wrong:
        raise BadRequest("the segments are no JSON") from wrong
    aspects, rows = (given.get("aspects"), given.get("rows")) if isinstance(given, dict) else (None, None)
    if not isinstance(aspects, list) or not isinstance(rows, dict) or not all(map(_is_key, aspects)):
        raise BadRequest("the segments are no object of aspects and rows")
    if len(aspects) > MOST_ATTRIBUTES or not all(_is_row(index, row) for index, row in rows.items()):
        raise BadRequest("a row of the segments is no text by its index")
    return aspects, rows


def _is_key(value: Any) -> bool:
    return isinstance(value, str) and bool(_KEY.fullmatch(value))


def _is_row(index: str, row: Any) -> bool:
    return index.isdecimal() and isinstance(row, str) and len(row) <= MOST_ATTRIBUTES
