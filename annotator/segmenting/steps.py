"""Finds the steps of a chain of thought: numbered ones where there are any, else paragraphs, else lines."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from annotator.segmenting.blocks import Block, Kind

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
    return [_before_headings(blocks, number.block) for number in chain]


def _numbers(text: str, blocks: Sequence[Block]) -> Iterator[_Number]:
    for at, block in enumerate(blocks):
        if match := _NUMBERED.match(text, block.start) or _CHINESE.match(text, block.start):
            digits = match["number"]
            value = int(digits) if digits.isdecimal() else _CHINESE_DIGITS.index(digits)
            yield _Number(at, value, (match["before"], (match["label"] or "").casefold()))


def _before_headings(blocks: Sequence[Block], at: int) -> int:
    while at > 0 and blocks[at - 1].kind is Kind.HEADING:
        at -= 1
    return at


def _conclusion(blocks: Sequence[Block], numbered: Sequence[int]) -> list[int]:
    """Returns the first block after the last step: a paragraph, unless other steps have paragraphs of their own."""
    ends = [*numbered[1:], len(blocks)]
    paragraphs = [
        next((at for at in range(start + 1, end) if _is_paragraph(blocks, at)), 0)
        for start, end in zip(numbered, ends, strict=True)
    ]
    return paragraphs[-1:] if paragraphs[-1] and not any(paragraphs[:-1]) else []


def _is_paragraph(blocks: Sequence[Block], at: int) -> bool:
    block = blocks[at]
    return block.apart and not block.listed and not block.indent and _begins_step(blocks, at)


def _begins_step(blocks: Sequence[Block], at: int) -> bool:
    return blocks[at].kind is not Kind.SOLID and (at == 0 or blocks[at - 1].kind is not Kind.HEADING)
