"""Cuts a text into segments: sentences or steps. Code, tables and formulas stay whole; a heading joins what follows.

The breaks and empty lines after a segment belong to it, and so do the spaces within a line. The indentation of a
line belongs to the segment that begins there. So the ranges partition the text, whatever its characters.
"""

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import pairwise

from annotator.limits import LONGEST_CUT_TEXT, MOST_SEGMENTS
from annotator.segmenting.blocks import Block, Kind, blocks
from annotator.segmenting.ranges import Range, from_starts, grouped, whole
from annotator.segmenting.sentences import sentence_starts
from annotator.segmenting.steps import step_starts


class Unit(StrEnum):
    """What a segment is: a sentence, a step of a chain of thought, or the whole text."""

    SENTENCE = "sentence"
    STEP = "step"
    TEXT = "text"


def cut(text: str, unit: Unit = Unit.SENTENCE, *, language: str = "", most: int = MOST_SEGMENTS) -> tuple[Range, ...]:
    """Returns the ranges of the segments, which partition the text; an empty text has none.

    `language` is a code such as `de` or `pt-BR`; sentences are cut as in English without it. A text of more than
    LONGEST_CUT_TEXT characters is one segment. Where a text has more than `most`, neighbours are joined.
    """
    if unit is Unit.TEXT or len(text) > LONGEST_CUT_TEXT:
        return whole(text)
    read = blocks(text)
    starts = step_starts(text, read) if unit is Unit.STEP else _sentence_starts(text, read, language=language)
    return grouped(from_starts(text, _with_words(text, starts)[1:]), most=most)


def _with_words(text: str, starts: Iterable[int]) -> list[int]:
    """Returns the starts of segments that have a letter or a digit. What has none joins the segment before."""
    spans = pairwise([*starts, len(text)])
    return [start for start, end in spans if any(map(str.isalnum, text[start:end]))]


def _sentence_starts(text: str, read: Sequence[Block], *, language: str) -> Iterator[int]:
    heading = False
    for block in read:
        if not heading:
            yield block.start
        heading = block.kind is Kind.HEADING
        if block.kind is Kind.PROSE:
            prose = text[block.content : block.end]
            yield from (block.content + start for start in sentence_starts(prose, language=language))
