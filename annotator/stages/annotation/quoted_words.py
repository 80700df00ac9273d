"""Finds words that were selected on a page in the source of the text, which has other blanks, marks and addresses."""

import re
import unicodedata
from bisect import bisect_left
from itertools import takewhile
from typing import Any

AROUND = 20
_SPOKEN = "LNM"
"""The Unicode categories of letters, digits and their accents: all that page and source have in common."""


def _is_letter(character: str) -> bool:
    return unicodedata.category(character)[0] in _SPOKEN


class Letters:
    """The letters of a text without all that stands between them, with their places.

    A selection is known by its letters, by its index `nth` (from 0) among the `of` places on the page with the same
    letters, by the letters `before` and `after` it (AROUND of them), and by the share of the text's letters that stand
    before it. Where the source has as many such places, it is the one of that index. Otherwise it is the one with the
    most of these neighbours, and among equals the one at the nearest share. evidence.js does the same on the page.
    """

    def __init__(self, text: str) -> None:
        self.places = [place for place, character in enumerate(text) if _is_letter(character)]
        self.letters = "".join(map(text.__getitem__, self.places))

    def found(self, quote: str) -> list[int]:
        """Returns where the quote's letters begin among the text's; nothing for a quote without a letter."""
        wanted = "".join(filter(_is_letter, quote))
        return [match.start() for match in re.finditer(f"(?={re.escape(wanted)})", self.letters)] if wanted else []

    def range_of(
        self, quote: str, *, nth: int, of: int, share: float, before: str = "", after: str = ""
    ) -> tuple[int, int] | None:
        """Returns the characters (start, end) of a selection, or None where its letters are not in the text."""
        found = self.found(quote)
        if not found:
            return None
        length = sum(map(_is_letter, quote))

        def likeness(first: int) -> tuple[int, float]:
            letters, end = self.letters, first + length
            pairs = (letters[max(first - AROUND, 0) : first][::-1], before[::-1]), (letters[end : end + AROUND], after)
            alike = sum(
                len(list(takewhile(lambda both: both[0] == both[1], zip(*pair, strict=False)))) for pair in pairs
            )
            return alike, -abs(first / len(letters) - share)

        first = found[nth] if len(found) == of and 0 <= nth < of else max(found, key=likeness)
        last = first + length - 1
        return self.places[first], self.places[last] + 1

    def selection(self, quote: str, start: int) -> dict[str, Any]:
        """Returns how the quote that begins at a character of the text is known, as `range_of` takes it."""
        found, first = self.found(quote), bisect_left(self.places, start)
        end = first + sum(map(_is_letter, quote))
        return {
            "quote": quote,
            "nth": found.index(first) if first in found else 0,
            "of": len(found),
            "share": round(first / max(len(self.letters), 1), 6),
            "before": self.letters[max(first - AROUND, 0) : first],
            "after": self.letters[end : end + AROUND],
        }
