"""The words of a response on which a score is based, as the rating form keeps them: one JSON list a response."""

import json
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from django.forms import CharField, Form, HiddenInput, ValidationError
from django.utils.translation import gettext as _

from annotator.infrastructure.db.storable_text import fault_in
from annotator.infrastructure.limits import LONGEST_EVIDENCE, LONGEST_NOTE, MOST_EVIDENCE
from annotator.models import Attribute, Rating, Response
from annotator.stages.annotation.quoted_words import AROUND, Letters

Evidence = tuple[tuple[str, int, int, str], ...]
"""(attribute, start, end, note): characters of the response from `start` up to, not including, `end`."""


def evidence_name(response: int) -> str:
    """Returns the name of the field of the response with this public number."""
    return f"evidence-{response}"


def evidence_field() -> CharField:
    return CharField(required=False, max_length=MOST_EVIDENCE * (LONGEST_EVIDENCE + LONGEST_NOTE), widget=HiddenInput)


def located_evidence(form: Form, responses: Iterable[Response], attributes: Sequence[str]) -> dict[int, Evidence]:
    """Returns the evidence of a form that is being cleaned, by response id; what is wrong with it becomes an error."""
    located = {}
    for response in responses:
        name = evidence_name(response.public_id)
        try:
            located[response.pk] = read_evidence(form.cleaned_data.get(name, ""), response.text, attributes)
        except ValidationError as fault:
            form.add_error(name, fault)
    return located


def read_evidence(value: str, text: str, attributes: Sequence[str]) -> Evidence:
    """Reads the field's value about a response's text and the keys of attributes.

    Each item has an `attribute`, a `note`, and a selection as `Letters.range_of` takes it. Where the words were stored
    before, `at` holds their characters, as long as the text is the same.

    Raises:
        ValidationError: the value is no such list or has too many items, or words are too many or not in the text.
    """
    if not value:
        return ()
    try:
        items = json.loads(value)
        if len(items) > MOST_EVIDENCE:
            raise ValidationError(_("Select at most %(most)s stretches of a response.") % {"most": MOST_EVIDENCE})
        letters = Letters(text)
        return tuple(_read(item, text, letters, attributes) for item in items)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        raise ValidationError(_("The selected words cannot be read. Remove them and select them anew.")) from None


def _read(item: dict[str, Any], text: str, letters: Letters, attributes: Sequence[str]) -> tuple[str, int, int, str]:
    key, quote, note = item["attribute"], item["quote"], item.get("note") or ""
    if key not in attributes or not isinstance(note, str) or fault_in(quote + note):
        raise ValueError(key)
    start, end = map(int, item.get("at") or (0, 0))
    if 0 <= start < end <= len(text) and text[start:end] == quote:
        return key, start, end, note.strip()
    shown = quote if len(quote) <= 60 else f"{quote[:60]}…"
    place = letters.range_of(
        quote,
        nth=int(item.get("nth", 0)),
        of=int(item.get("of", 0)),
        share=float(item.get("share", 0)),
        before=str(item.get("before", ""))[-AROUND:],
        after=str(item.get("after", ""))[:AROUND],
    )
    if place is None:
        raise ValidationError(_("“%(quote)s” is not in the text as it stands. Select fewer words.") % {"quote": shown})
    if place[1] - place[0] > LONGEST_EVIDENCE:
        said = _("“%(quote)s” has more than %(most)s characters. Select fewer words.")
        raise ValidationError(said % {"quote": shown, "most": LONGEST_EVIDENCE})
    return key, *place, note.strip()


def filled_evidence(rating: Rating) -> str:
    """Returns the field's value from what is stored."""
    if not rating.evidence:
        return ""
    text, letters = rating.response.text, Letters(rating.response.text)
    items = [
        {"attribute": attribute, "at": [start, end], "note": note} | letters.selection(text[start:end], start)
        for attribute, start, end, note in rating.evidence
    ]
    return json.dumps(items, ensure_ascii=False)


def evidence_keys(attributes: Iterable[Attribute], *, taken: Collection[str]) -> list[tuple[Attribute, str]]:
    """Returns each attribute with the key by which selected words become its evidence: a free letter of its name."""
    used, found = set(taken), []
    for attribute in attributes:
        free = (letter for letter in attribute.shown_name.lower() if letter.isalpha() and letter not in used)
        found.append((attribute, next(free, "")))
        used.add(found[-1][1])
    return found
