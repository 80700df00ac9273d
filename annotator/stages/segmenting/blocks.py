r"""Reads the lines of a markdown text as blocks: prose, headings, and what is never cut (code, tables, formulas).

One pass over the lines: any text takes time in proportion to its length. Markers of quotes and lists are a prefix of
their lines, and an item of a list begins a block. A formula is a block if it has lines of its own, between `$$` and
`$$` or `\[` and `\]`. Raw HTML is prose, as pages show it as text.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property

WRAPPED = range(50, 101)
"""Lengths of a line that somebody may have wrapped by hand. Shorter and longer lines end where the writer meant it."""
MOST_FORMULA_LINES = 100
"""Most lines from the mark that opens a formula to the one that closes it; farther apart, they are no formula."""

_LINE = re.compile(r"[^\r\n]+(?:\r\n?|\n)?|\r\n?|\n")
_QUOTE = re.compile(r"(?:[ \t]*>)+ ?")
_MARKER = re.compile(
    r"[ \t]*(?:[-*+•‣◦–·]|\d{1,9}[.)]|[IVX]{1,5}\.|[A-Za-z]\)|\((?:\d{1,3}|[a-z])\))(?:[ \t]+(?:\[[ xX]\][ \t]+)?|$)"
)
_FENCE = re.compile(r"[ \t]*(`{3,}(?=[^`]*$)|~{3,})")
_HEADING = re.compile(r" {0,3}#{1,6}(?:[ \t]|$)")
_BOLD_LINE = re.compile(r"[ \t]*(\*\*|__)[^*_]*[^*_.!?。！？]\1:?[ \t]*$")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+)[ \t]*$")
_INDENTED = re.compile(r" {4}| {0,3}\t")
_CLOSED_BY = {"$$": "$$", "\\[": "\\]"}
_AFTER_FORMULA = " \t.,;"


class BlockKind(Enum):
    """What a block is. A heading stays with the block that follows it, and a solid block is never cut."""

    PROSE = "prose"
    HEADING = "heading"
    SOLID = "solid"


@dataclass(frozen=True, slots=True)
class Block:
    """The lines from `start` to `end`, with the empty lines after them; its words begin at `content`.

    `apart` says whether an empty line, or nothing, stands before the block; `listed`, whether it is an item of a list;
    `indent`, how many characters of white space its first line begins with.
    """

    kind: BlockKind
    start: int
    content: int
    end: int = 0
    apart: bool = True
    listed: bool = False
    indent: int = 0


@dataclass(slots=True)
class _Line:
    """A line that begins at `start`, divided into the marks of a quote, the mark of a list and its body."""

    start: int
    quote: str
    marker: str
    body: str

    @property
    def unquoted(self) -> str:
        return self.marker + self.body

    @property
    def empty(self) -> bool:
        return not self.unquoted.strip()

    def block(self, kind: BlockKind, *, apart: bool) -> Block:
        content = self.start + len(self.quote) + len(self.marker)
        indent = len(self.unquoted) - len(self.unquoted.lstrip())
        return Block(kind, self.start, content, apart=apart, listed=bool(self.marker), indent=indent)


def blocks(text: str) -> list[Block]:
    """Returns the blocks of a text. They partition it, and white space at its beginning belongs to the first."""
    begun = _Reader([_line(match) for match in _LINE.finditer(text)]).begun_blocks()
    if not begun:
        return [Block(BlockKind.SOLID, 0, 0, len(text))] if text else []
    begun[0] = replace(begun[0], start=0)
    ends = [*(block.start for block in begun[1:]), len(text)]
    return [replace(block, end=end) for block, end in zip(begun, ends, strict=True)]


def _line(match: re.Match[str]) -> _Line:
    text = match[0].rstrip("\r\n")
    quote = _matched(_QUOTE, text) if ">" in text else ""
    rest = text[len(quote) :]
    marker = "" if _is_rule(rest) else _matched(_MARKER, rest)
    return _Line(match.start(), quote, marker, rest[len(marker) :])


def _matched(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.match(text)
    return match[0] if match else ""


def _is_rule(line: str) -> bool:
    """Returns whether the line is drawn across the page: three or more of one of `-`, `*` and `_`, and white space."""
    mark = line.lstrip()[:1]
    if mark not in ("-", "*", "_"):
        return False
    marks = "".join(line.split())
    return len(marks) > 2 and marks == mark * len(marks)


class _Reader:
    """Reads lines from the first to the last; a block is `begun` where its end is not known yet."""

    def __init__(self, lines: Sequence[_Line]) -> None:
        self.lines = lines
        self.begun: list[Block] = []
        self.apart = True
        self.in_list = False

    def begun_blocks(self) -> list[Block]:
        at = 0
        while at < len(self.lines):
            at = self._read(at)
        return self.begun

    def _read(self, at: int) -> int:
        """Takes the block, or the line, that begins at a line, and returns the number of the line after it."""
        line = self.lines[at]
        if line.empty:
            self.apart = True
            return at + 1
        if self.apart and not line.marker and not _INDENTED.match(line.body):
            self.in_list = False
        if after := self._solid_end(at):
            return self._begin(BlockKind.SOLID, line, after=after)
        if not line.marker and (_HEADING.match(line.body) or _BOLD_LINE.match(line.body)):
            return self._begin(BlockKind.HEADING, line, after=at + 1)
        if self._goes_on(line) and _UNDERLINE.match(line.body):
            self.begun[-1] = replace(self.begun[-1], kind=BlockKind.HEADING)
            return at + 1
        if _is_rule(line.unquoted):
            self.apart = True
            return at + 1
        if self._goes_on(line) and self._is_wrapped(at):
            return at + 1
        return self._begin(BlockKind.PROSE, line, after=at + 1)

    def _begin(self, kind: BlockKind, line: _Line, *, after: int) -> int:
        self.begun.append(line.block(kind, apart=self.apart))
        self.apart = False
        self.in_list = self.in_list or bool(line.marker)
        return after

    def _goes_on(self, line: _Line) -> bool:
        return not self.apart and not line.marker and bool(self.begun) and self.begun[-1].kind is BlockKind.PROSE

    def _is_wrapped(self, at: int) -> bool:
        """Returns whether a line goes on with the sentence of the line above, as far as one can tell."""
        # Lines that begin with a capital are verses, fields or items without marks more often than wrapped prose.
        above, line = self.lines[at - 1], self.lines[at]
        hangs = self.begun[-1].listed and line.body[0].isspace()
        return line.body.lstrip()[0].islower() and (hangs or len(above.body) in WRAPPED)

    def _solid_end(self, at: int) -> int:
        """Returns the number of the line after the solid block that begins at a line, or 0 where none does."""
        line = self.lines[at]
        if fence := _FENCE.match(line.body):
            return self._fence_end(at, fence[1])
        if (opening := line.body.lstrip()[:2]) in _CLOSED_BY:
            closing = _CLOSED_BY[opening]
            body = line.body.strip(_AFTER_FORMULA)
            if closing in body[2:]:
                # What follows on the same line makes the formula a part of a sentence.
                return at + 1 if body.endswith(closing) else 0
            ends = self._formula_ends[closing]
            place = bisect_left(ends, at + 1)
            return ends[place] + 1 if place < len(ends) and ends[place] - at < MOST_FORMULA_LINES else 0
        if self._is_table(at):
            return self._first_after(at, lambda row: "|" not in row.body)
        # In a list, indented lines belong to an item.
        if self.apart and not self.in_list and _INDENTED.match(line.unquoted):
            return self._first_after(at, lambda row: not row.empty and not _INDENTED.match(row.unquoted))
        return 0

    def _fence_end(self, at: int, fence: str) -> int:
        quoted = bool(self.lines[at].quote)
        for number in range(at + 1, len(self.lines)):
            line = self.lines[number]
            if quoted and not line.quote:
                return number
            marks = line.unquoted.strip()
            if len(marks) >= len(fence) and marks == fence[0] * len(marks):
                return number + 1
        return len(self.lines)

    @cached_property
    def _formula_ends(self) -> dict[str, list[int]]:
        # Collected once: looked for from each opening mark, it would take quadratic time where none is closed.
        bodies = [line.unquoted.rstrip(_AFTER_FORMULA) for line in self.lines]
        closings = _CLOSED_BY.values()
        return {mark: [number for number, body in enumerate(bodies) if body.endswith(mark)] for mark in closings}

    def _is_table(self, at: int) -> bool:
        if "|" not in self.lines[at].body or at + 1 == len(self.lines):
            return False
        below = self.lines[at + 1].unquoted
        return "|" in below and "-" in below and not below.strip("|:- \t")

    def _first_after(self, at: int, ends: Callable[[_Line], bool]) -> int:
        return next((number for number in range(at + 1, len(self.lines)) if ends(self.lines[number])), len(self.lines))
