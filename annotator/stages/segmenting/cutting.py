"""Cuts a text into segments: sentences or steps. Code, tables and formulas stay whole; a heading joins what follows.

The breaks and empty lines after a segment belong to it, and so do the spaces within a line. The indentation of a
line belongs to the segment that begins there. So the ranges partition the text, whatever its characters.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

import sentencex

from annotator.infrastructure.limits import LONGEST_CUT_TEXT, MOST_SEGMENTS
from annotator.stages.segmenting.blocks import Block, BlockKind, blocks
from annotator.stages.segmenting.ranges import Range, from_starts, grouped, whole


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
    # What has no letter and no digit joins the segment before.
    spans = pairwise([*starts, len(text)])
    worded = [start for start, end in spans if any(map(str.isalnum, text[start:end]))]
    return grouped(from_starts(text, worded[1:]), most=most)


def _sentence_starts(text: str, read: Sequence[Block], *, language: str) -> Iterator[int]:
    heading = False
    for block in read:
        if not heading:
            yield block.start
        heading = block.kind is BlockKind.HEADING
        if block.kind is BlockKind.PROSE:
            prose = text[block.content : block.end]
            yield from (block.content + start for start in sentence_starts(prose, language=language))


# Sentences ---------------------------------------------------------------------------------------------------


LANGUAGE = "en"
"""The language of texts of which none is known. The library takes it for languages that it does not know, too."""
WINDOW = 2_000
"""Most characters that the library sees at once. What takes it quadratic time then takes 0.002 s for each piece."""

_NOT_PROSE = re.compile(
    r"(?<!`)(`+)(?!`)[^`]+\1(?!`)"  # code
    r"|\$\$[^$]+\$\$|(?<![\w$])\$(?=\S)[^$\n]*(?<=\S)\$(?![\d$])"
    r"|\\\((?:(?!\\[()])[\s\S])*\\\)|\\\[(?:(?!\\[\[\]])[\s\S])*\\\]"  # formulas
    r"|(?<=\]\()[^()\s]+(?=\))"  # the address of a link
)
_OPENING_QUOTE = re.compile(r'(?<![^\s(\[{—–/-])"(?=\S)')
_LONG_QUOTATION = re.compile(r"“[^“”]{100,}”|„[^„“]{100,}“|«[^«»]{100,}»|「[^「」]{100,}」")
_END_IN_BRACKETS = re.compile(r"(?<=[^\W\d_]{2})(?<!Inc)(?<!etc)[.!?]\)(?=\s+[\"“(]?[^\W\d_a-z])")
# Abbreviations in the library's English list (Maine, Oklahoma, number, ...) that far more often end a sentence.
_PLAIN_WORDS = re.compile(r"\b(?:me|[Nn]o|OK|[Oo]k|reps|art|ill|ID|fed|miss|ore|arc)(?=\.\s+[\"“(*]*[A-Z])")
_EMPHASIS = re.compile(r"\*+|~~|(?<!\w)_+|_+(?!\w)")
_OTHER_SPACE = re.compile(r"[^\S ]")
_BROKEN = re.compile(r"[\ud800-\udfff]")  # no text for the library
_LINE_START = re.compile(r"(\r\n?|\n)((?:[ \t]*>)*)")


def sentence_starts(prose: str, *, language: str = "") -> Iterator[int]:
    """Yields the positions at which sentences begin, but not the first; white space belongs to the sentence before.

    `language` is a code such as `de` or `pt-BR`. It decides which abbreviations are known.
    """
    name = re.split("[-_]", language)[0].lower() or LANGUAGE
    plain = _plain(prose)
    if name == LANGUAGE:
        plain = _PLAIN_WORDS.sub(lambda match: "x" * len(match[0]), plain)
    for start in _starts(plain, language=name):
        # What belongs to the character before, such as an accent, begins nothing.
        if not unicodedata.category(prose[start]).startswith("M") and prose[start] != "\u200d":
            at = start  # or at the marks that open an emphasis; those that touch the sentence before close one
            while at > 0 and plain[at - 1] == " " and not prose[at - 1].isspace():
                at -= 1
            yield at if at > 0 and prose[at - 1].isspace() else start


def _plain(prose: str) -> str:
    """Returns the text for the library, of the same length and with the sentences' ends at the same positions."""
    # A word with a capital, as a sentence may begin with it.
    plain = _NOT_PROSE.sub(lambda match: "X" + "x" * (len(match[0]) - 1), prose)
    # The library takes what stands between two quotations for one, unless it can tell the marks that open and close.
    plain = _OPENING_QUOTE.sub("“", plain).replace('"', "”")
    # It cuts no quotation. In a long one, such as a letter, sentences are rated one by one.
    plain = _LONG_QUOTATION.sub(lambda match: f" {match[0][1:-1]} ", plain)
    # It overlooks an end that a bracket follows.
    plain = _END_IN_BRACKETS.sub("x.", plain)
    plain = _EMPHASIS.sub(_blank, plain)
    plain = _LINE_START.sub(_blank, plain)
    # It panics where a no-break space, or another white space of several bytes, is between a letter and a full stop.
    plain = _OTHER_SPACE.sub(" ", plain)
    return _BROKEN.sub("x", plain)


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])


def _starts(plain: str, *, language: str) -> Iterator[int]:
    at = 0
    while at < len(plain):
        window = plain[at : at + WINDOW]
        starts = _starts_in(window, language=language)
        if at + WINDOW >= len(plain):
            yield from (at + start for start in starts)
            return
        yield from (at + start for start in starts)
        # The last sentence may go on after the window, so it is read again from its start. A long one is not, or its
        # beginning would be read again and again.
        at += starts[-1] if starts and starts[-1] >= WINDOW // 2 else WINDOW


def _starts_in(window: str, *, language: str) -> list[int]:
    try:
        found = sentencex.get_sentence_boundaries(language, window)
    except BaseException as error:
        # A panic of Rust is no Exception, so it would end a worker. What makes the library panic stays uncut.
        if type(error).__name__ != "PanicException":
            raise
        return []
    return [sentence["start_index"] for sentence in found][1:]


# Steps -------------------------------------------------------------------------------------------------------


_NUMBERED = re.compile(
    r"(?P<before>[ \t>]*(?:#{1,6}[ \t]+)?(?:[-*+•][ \t]+)?(?:\*\*|__)?[\[(]?)"
    r"(?:(?P<label>[^\W\d_]{1,12})[ \t]*#?)?(?P<number>\d{1,4})"
    r"(?:[ \t]*[.):：\]、．](?!\d)|(?:\*\*|__)|[ \t]+[-–—]|[ \t]*(?=[\r\n]|\Z))"
)
_CHINESE = re.compile(
    r"(?P<before>[ \t>]*(?:#{1,6}[ \t]+)?(?:\*\*|__)?)(?P<label>第)(?P<number>[一二三四五六七八九十]|\d{1,4})步"
)
_CHINESE_DIGITS = "零一二三四五六七八九十"


@dataclass(frozen=True)
class _Number:
    """A number at the beginning of a block, and its form: the characters and the word before it."""

    block: int
    value: int
    form: tuple[str, str]


def step_starts(text: str, blocks: Sequence[Block]) -> Iterator[int]:
    """Yields the positions at which steps begin. What stands before the first number is a step as well.

    Code, tables and formulas belong to the step before them.
    """
    numbered = _numbered_blocks(text, blocks)
    if numbered:
        begun = {0, *numbered, *_conclusion(blocks, numbered)}
        yield from (blocks[number].start for number in sorted(begun))
        return
    lines = [number for number in range(len(blocks)) if _begins_step(blocks, number)]
    paragraphs = [number for number in lines if blocks[number].apart]
    yield from (blocks[number].start for number in (paragraphs if len(paragraphs) > 1 else lines))


def _numbered_blocks(text: str, blocks: Sequence[Block]) -> list[int]:
    """Returns the blocks at which numbered steps begin: of numbers of one form that count up, those that begin first.

    Other numbers, such as those of a list inside a step, have another form or begin again.
    """
    chains: dict[tuple[str, str], list[_Number]] = {}
    for number in _numbers(text, blocks):
        chain = chains.setdefault(number.form, [])
        if number.value in ((chain[-1].value + 1,) if chain else (0, 1)):
            chain.append(number)
    chain = next((chain for chain in chains.values() if len(chain) > 1), [])
    begun = []
    for number in chain:
        at = number.block
        while at > 0 and blocks[at - 1].kind is BlockKind.HEADING:  # a heading belongs to the step below it
            at -= 1
        begun.append(at)
    return begun


def _numbers(text: str, blocks: Sequence[Block]) -> Iterator[_Number]:
    for at, block in enumerate(blocks):
        if match := _NUMBERED.match(text, block.start) or _CHINESE.match(text, block.start):
            digits = match["number"]
            value = int(digits) if digits.isdecimal() else _CHINESE_DIGITS.index(digits)
            yield _Number(at, value, (match["before"], (match["label"] or "").casefold()))


def _conclusion(blocks: Sequence[Block], numbered: Sequence[int]) -> list[int]:
    """Returns the first block after the last step: a paragraph, unless other steps have paragraphs of their own."""

    def is_paragraph(at: int) -> bool:
        block = blocks[at]
        return block.apart and not block.listed and not block.indent and _begins_step(blocks, at)

    ends = [*numbered[1:], len(blocks)]
    paragraphs = [
        next((at for at in range(start + 1, end) if is_paragraph(at)), 0)
        for start, end in zip(numbered, ends, strict=True)
    ]
    return paragraphs[-1:] if paragraphs[-1] and not any(paragraphs[:-1]) else []


def _begins_step(blocks: Sequence[Block], at: int) -> bool:
    return blocks[at].kind is not BlockKind.SOLID and (at == 0 or blocks[at - 1].kind is not BlockKind.HEADING)
