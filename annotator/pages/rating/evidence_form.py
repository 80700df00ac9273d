"""The words of a response on which a score is based, as the rating form keeps them: one JSON list a response."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from django.forms import ValidationError
from django.utils.translation import gettext as _

from annotator.infrastructure.limits import LONGEST_QUOTE, MOST_EVIDENCE
from annotator.models import Attribute, Rating
from annotator.stages.pii.texts import letters_before, occurrences

Evidence = tuple[tuple[str, int, int, str], ...]
"""(attribute, start, end, note): characters of the response from `start` up to, not including, `end`."""


def evidence_name(response: int) -> str:
    """Returns the name of the field of the response with this public number."""
    return f"evidence-{response}"


def read_evidence(value: str, text: str, attributes: Sequence[str]) -> Evidence:
    """Reads the field's value about a response's text and the keys of attributes.

    Each item has an `attribute`, a `note`, and a `quote` as it was shown on the page, which may differ from the source
    in blanks and markdown. Of several places it is at the one with about as many letters `before` it. Where the words
    were stored before, `at` holds their characters, as long as the text is the same.

    Raises:
        ValidationError: the value is no such list or has too many items, or a quote is not in the text.
    """
    if not value:
        return ()
    try:
        items = json.loads(value)
        if len(items) > MOST_EVIDENCE:
            raise ValidationError(_("Select at most %(most)s stretches of a response.") % {"most": MOST_EVIDENCE})
        return tuple(_read(item, text, attributes) for item in items)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError):
        raise ValidationError(_("The selected words cannot be read. Remove them and select them anew.")) from None


def _read(item: dict[str, Any], text: str, attributes: Sequence[str]) -> tuple[str, int, int, str]:
    if item["attribute"] not in attributes:
        raise KeyError(item["attribute"])
    key, note = item["attribute"], str(item.get("note", "")).strip()
    start, end = map(int, item.get("at") or (0, 0))
    if 0 <= start < end <= len(text) and text[start:end] == item["quote"]:
        return key, start, end, note
    quote, before = str(item["quote"])[:LONGEST_QUOTE], int(item.get("before", 0))
    places = list(occurrences(quote, text)) if quote.strip() else []
    if not places:
        shown = quote if len(quote) <= 60 else f"{quote[:60]}…"
        raise ValidationError(_("“%(quote)s” is not in the text as it stands. Select fewer words.") % {"quote": shown})
    return key, *min(places, key=lambda place: abs(letters_before(text, place[0]) - before)), note


def filled_evidence(rating: Rating) -> str:
    """Returns the field's value from what is stored."""
    text = rating.response.text if rating.evidence else ""
    items = [
        {"attribute": attribute, "at": [start, end], "quote": text[start:end], "note": note}
        | {"before": letters_before(text, start)}
        for attribute, start, end, note in rating.evidence[:MOST_EVIDENCE]
    ]
    return json.dumps(items) if items else ""


def letters(attributes: Iterable[Attribute]) -> Sequence[tuple[Attribute, str]]:
    """Returns each attribute with the key by which selected words become its evidence: a letter of its name."""
    taken: set[str] = set()
    found = []
    for attribute in attributes:
        names = [letter for letter in attribute.shown_name.lower() if letter.isalpha() and letter not in taken]
        taken |= set(names[:1])
        found.append((attribute, names[0] if names else ""))
    return found
