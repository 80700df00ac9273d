"""Finds where the sentences of a piece of prose begin. The library sentencex decides; this module prepares its input.

The library does not know markdown, and some texts take it quadratic time. So it sees pieces of limited length, in which
marks of emphasis and of long quotations are blank, and code, formulas and addresses are words. Every character stays
where it was.
"""

import re
import unicodedata
from collections.abc import Iterator

import sentencex

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
        if not _splits_character(prose, start):
            yield _before_emphasis(prose, plain, start)


def _plain(prose: str) -> str:
    """Returns the text for the library, of the same length and with the sentences' ends at the same positions."""
    plain = _NOT_PROSE.sub(lambda match: _word(len(match[0])), prose)
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


def _word(length: int) -> str:
    # With a capital, as a sentence may begin with it.
    return "X" + "x" * (length - 1)


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


def _before_emphasis(prose: str, plain: str, start: int) -> int:
    """Returns the position of the marks that open an emphasis at the start of a sentence, or else the start."""
    at = start
    while at > 0 and plain[at - 1] == " " and not prose[at - 1].isspace():
        at -= 1
    # Marks that touch the sentence before close an emphasis, and belong to it.
    return at if at > 0 and prose[at - 1].isspace() else start


def _splits_character(prose: str, at: int) -> bool:
    """Returns whether what stands at a position belongs to the character before, such as an accent."""
    return unicodedata.category(prose[at]).startswith("M") or prose[at] == "\u200d"
