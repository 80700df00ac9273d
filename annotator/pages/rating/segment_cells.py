"""How answers about segments are written: in a form's fields, in drafts, and by the page's script.

There is a field for each cell, comment and quote of a segment, and one for a cut that an annotator has changed. N is
the response's public number, I the segment's index. A cell holds a level from 1, or a dash for an aspect that does not
apply; scores in the data count from 0.

    seg-N-I-ASPECT   comment-N-I   quote-N-I   cut-N

The page's script sends the cells of a response as one field, `scored-segments-N`. It holds JSON: the keys of the
`aspects`, and in `rows`, by the index of a segment, a character for each of them. A space is an answer that was taken
back, and a full stop says nothing.
"""

import json
import re
from collections.abc import Sequence
from typing import Any

from django.core.exceptions import BadRequest
from django.http import QueryDict

from annotator.infrastructure.limits import LONGEST_QUOTE, MOST_ATTRIBUTES
from annotator.models import Attribute
from annotator.stages.segmenting import NotAPartition, Range, partition

DOES_NOT_APPLY = "–"
_DASHES = {DOES_NOT_APPLY, "-", "x", "X"}


def place_of(response: int, index: int) -> str:
    """Returns the name of a segment, which ends the names of its fields."""
    return f"{response}-{index}"


def cell_name(place: str, aspect: str) -> str:
    return f"seg-{place}-{aspect}"


def cut_name(response: int) -> str:
    return f"cut-{response}"


def is_answer(value: str, aspect: Attribute) -> bool:
    if value in _DASHES:
        return True
    return len(value) == 1 and value.isascii() and value.isdigit() and 1 <= int(value) <= len(aspect.levels)


def score_in(value: str) -> int | None:
    """Returns the score of a cell that holds an answer; None where the aspect does not apply."""
    return None if value in _DASHES else int(value) - 1


def value_of(score: int | None) -> str:
    """Returns what a cell holds for a score."""
    return DOES_NOT_APPLY if score is None else str(score + 1)


def cut_value(cut: Sequence[Range]) -> str:
    """Returns segments as the form holds them: the ends of all of them."""
    return ",".join(str(end) for _start, end in cut)


def cut_in(value: str, text: str) -> tuple[Range, ...]:
    """Returns the segments of a text that the form holds; none where it holds none, or was changed by hand."""
    try:
        ends = [int(end) for end in value.split(",")] if value else []
        return partition(text, list(zip([0, *ends], ends, strict=False))) if ends else ()
    except (ValueError, NotAPartition):
        return ()


def quoted(quote: str, segment: Range, text: str) -> tuple[int, int]:
    """Returns the characters that a comment is about. A quote is as it was shown, which may not be the source."""
    words = quote.strip()[:LONGEST_QUOTE]
    at = text.find(words, segment.start, segment.end) if words else -1
    return (at, at + len(words)) if at >= 0 else (segment.start, segment.end)


def filled_segments(
    number: int,
    aspects: Sequence[str],
    scores: Sequence[Sequence[int | None]],
    *,
    cut: Sequence[Range] = (),
    own: bool = False,
    comments: Sequence[Sequence[Any]] = (),
    text: str = "",
) -> dict[str, str]:
    """Returns values of the form from stored scores [segments][aspects] of the response with this public number."""
    values = {
        cell_name(place_of(number, index), aspect): value_of(score)
        for index, row in enumerate(scores)
        for aspect, score in zip(aspects, row, strict=True)
    }
    if own:
        values[cut_name(number)] = cut_value(cut)
    for start, end, words in comments:
        index = next((index for index, segment in enumerate(cut) if segment.start <= start < segment.end), 0)
        values[f"comment-{place_of(number, index)}"] = words
        if cut and (start, end) != cut[index]:
            values[f"quote-{place_of(number, index)}"] = text[start:end]
    return values


# What the script sends -------------------------------------------------------------------------------------

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
        response = name.removeprefix(PREFIX)
        aspects, rows = _read(str(form.pop(name)[-1]))
        cells = {
            cell_name(f"{response}-{index}", aspect): value.strip()
            for index, row in rows.items()
            for aspect, value in zip(aspects, row, strict=False)
            if value != UNSAID
        }
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


def _read(text: str) -> tuple[list[str], dict[str, str]]:
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as wrong:
        raise BadRequest("the segments are no JSON") from wrong
    aspects, rows = (given.get("aspects"), given.get("rows")) if isinstance(given, dict) else (None, None)
    if not isinstance(aspects, list) or not isinstance(rows, dict):
        raise BadRequest("the segments are no object of aspects and rows")
    if not all(isinstance(aspect, str) and _KEY.fullmatch(aspect) for aspect in aspects):
        raise BadRequest("the segments are no object of aspects and rows")
    if len(aspects) > MOST_ATTRIBUTES or not all(
        index.isdecimal() and isinstance(row, str) and len(row) <= MOST_ATTRIBUTES for index, row in rows.items()
    ):
        raise BadRequest("a row of the segments is no text by its index")
    return aspects, rows
