"""Shows where two rendered texts differ, word by word."""

import re
from collections.abc import Iterator, Sequence

from rapidfuzz.distance import LCSseq

from annotator.infrastructure.web.visible_text import BLANK, visible_text, wrapped

DIFFERS = '<span class="differs">'
SHORTEST_EQUAL = 3
"""Fewer equal words between two differences are taken as a part of them: they are mostly there by chance."""
MOST_WORDS = 50_000
"""Of both texts together. More would hold up the page, and nobody would read them word by word."""
_FORMULA = "\x01"
# Equal signs are one word: a repeated one may be an entity, inside which nothing may be put.
_WORD = re.compile(rf"\w+|([^\w\s{BLANK}])\1*")
_TEXT = re.compile(rf"[^{BLANK}]+")


def with_differences(first: str, second: str) -> tuple[str, str]:
    """Returns two pieces of sanitised HTML with their differing words in `DIFFERS`; as they are if they are too long.

    The words that they have in common are their longest common subsequence.
    """
    texts = visible_text(first, formula=_FORMULA), visible_text(second, formula=_FORMULA)
    words = [list(_WORD.finditer(text)) for text in texts]
    if sum(map(len, words)) > MOST_WORDS:
        return first, second
    # Formulas are compared as they are written.
    ranges = _differing(
        *([html[slice(*word.span())] for word in of] for html, of in zip((first, second), words, strict=True))
    )
    one, other = (
        wrapped(html, _places(text, [(of[start].start(), of[end - 1].end()) for start, end in found]))
        for html, text, of, found in zip((first, second), texts, words, ranges, strict=True)
    )
    return one, other


def _differing(first: Sequence[str], second: Sequence[str]) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Returns for each text the ranges [start, end) of its words that the other one does not have there."""
    differing: list[list[int]] = []  # [start, end) in the first text, and in the second one
    for step in LCSseq.opcodes(first, second):
        if step.tag == "equal":
            continue
        if differing and step.src_start - differing[-1][1] < SHORTEST_EQUAL:
            differing[-1][1], differing[-1][3] = step.src_end, step.dest_end
        else:
            differing.append([step.src_start, step.src_end, step.dest_start, step.dest_end])
    return (
        [(start, end) for start, end, *_ in differing if start < end],
        [(start, end) for *_, start, end in differing if start < end],
    )


def _places(text: str, ranges: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int, str]]:
    """Yields what of the ranges is text: a tag ends a place, and what follows it is another one."""
    for start, end in ranges:
        for part in _TEXT.finditer(text, start, end):
            if not part[0].isspace():
                yield *part.span(), DIFFERS
