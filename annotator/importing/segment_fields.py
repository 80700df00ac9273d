"""Reads segments of responses in files, and what is said of them: ranges or texts, lists of levels, spans, steps."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from annotator.importing.field_checks import BadRow, shown, storable_text, whole
from annotator.importing.rows import Rules, SegmentLabel
from annotator.segmenting import (
    NotAPartition,
    Range,
    Unit,
    cut,
    finest_common_cut,
    from_starts,
    partition,
    partition_by_texts,
)

VERDICTS = frozenset({-1, 0, 1})
"""Verdicts on a step of PRM800K (arXiv 2305.20050). TRL's stepwise supervision says true or false."""


def segments_of(value: Any, text: str, name: str) -> tuple[Range, ...]:
    """Reads segments that are given as pairs [start, end], as objects {start, end}, or as texts. Raises BadRow."""
    if value in (None, [], ""):
        return ()
    if not isinstance(value, list):
        raise BadRow(f"{name} is {shown(value)}: it must be a list of [start, end], or of texts", name)
    try:
        if all(isinstance(item, str) for item in value):
            return partition_by_texts(text, value)
        return partition(text, [_pair(item) for item in value])
    except NotAPartition as wrong:
        raise BadRow(f"{name}: {wrong}", name) from wrong


def _pair(item: Any) -> Any:
    return [item["start"], item["end"]] if isinstance(item, dict) and {"start", "end"} <= item.keys() else item


def lists_of_levels(values: Mapping[str, Any], rules: Rules, count: int) -> SegmentLabel | None:
    """Reads a list for each aspect, with a level or null for each of so many segments. Raises BadRow."""
    lists = {aspect: values[aspect] for aspect in rules.aspects if values.get(aspect) not in (None, [None] * count)}
    if not lists:
        return None
    for aspect, given in lists.items():
        if not isinstance(given, list) or len(given) != count:
            what = f"it must be a list with a level for each of {count} segments"
            raise BadRow(f"{aspect} is {shown(given)}: {what}", aspect)
        levels = rules.aspects[aspect]
        for value in given:
            value = whole(value)
            if value is not None and (type(value) is not int or not 0 <= value < levels):
                raise BadRow(f"{aspect} has {shown(value)}: its levels are 0 to {levels - 1}, or null", aspect)
    return SegmentLabel(tuple(lists), tuple(zip(*(map(whole, given) for given in lists.values()), strict=True)))


def aspect_key(name: str) -> str:
    """Returns the key by which a rubric may know an aspect with this name, such as `wrong_grounding`."""
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


def marked(
    text: str, spans: Sequence[Mapping[str, Any]], kinds: Sequence[str], rules: Rules
) -> tuple[tuple[Range, ...], SegmentLabel | None]:
    """Returns the segments of a text with marked errors, and what the marks say of those aspects that are such kinds.

    The text is cut into sentences and at the ends of the marks. A segment that a mark covers has the lowest level of
    the mark's kind, any other one the highest. Raises BadRow.
    """
    ranges = [_span(span, text, number) for number, span in enumerate(spans)]
    bounds = sorted({_past_space(text, bound) for span in ranges for bound in span} - {0, len(text)})
    segments = finest_common_cut([cut(text, Unit.SENTENCE), from_starts(text, bounds)])
    aspects = tuple(kind for kind in kinds if kind in rules.aspects)
    if not aspects:
        return segments, None
    of_kind = {kind: [r for r, span in zip(ranges, spans, strict=True) if _kind(span) == kind] for kind in aspects}
    levels = tuple(
        tuple(0 if _covered(text, segment, of_kind[kind]) else rules.aspects[kind] - 1 for kind in aspects)
        for segment in segments
    )
    return segments, SegmentLabel(aspects, levels)


def _span(span: Any, text: str, number: int) -> Range:
    name = f"spans[{number}]"
    if not isinstance(span, dict):
        raise BadRow(f"{name} is {shown(span)}: it must be an object with aspect, start and end", name)
    start, end = span.get("start"), span.get("end")
    if type(start) is not int or type(end) is not int or not 0 <= start < end <= len(text):
        raise BadRow(f"{name} is {shown(span)}: it must lie within the {len(text)} characters of the response", name)
    return Range(start, end)


def _kind(span: Mapping[str, Any]) -> str:
    return aspect_key(str(span.get("aspect") or span.get("category") or ""))


def _past_space(text: str, at: int) -> int:
    """Returns the end of the white space at a position: it belongs to the segment before."""
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _covered(text: str, segment: Range, ranges: Sequence[Range]) -> bool:
    end = segment.start + len(segment.of(text).rstrip())
    return any(one.start <= segment.start and end <= one.end for one in ranges)


def joined_steps(steps: Sequence[Any], name: str) -> tuple[str, tuple[Range, ...]]:
    """Returns the text of some steps, each on a line of its own, and their ranges. Raises BadRow."""
    if not isinstance(steps, list) or not steps:
        raise BadRow(f"{name} must be a list of at least one step", name)
    texts = [storable_text(step, f"{name}[{number}]") for number, step in enumerate(steps)]
    apart = [step if step[-1].isspace() else f"{step}\n" for step in texts[:-1]] + texts[-1:]
    return "".join(apart), segments_of(apart, "".join(apart), name)


def steps_label(verdicts: Sequence[Any], rules: Rules, name: str, *, count: int) -> SegmentLabel | None:
    """Returns verdicts on steps as levels of the deciding aspect, null where there is none. Raises BadRow."""
    if not isinstance(verdicts, list) or len(verdicts) != count:
        raise BadRow(f"{name} must be a list with a verdict for each of {count} steps", name)
    for number, verdict in enumerate(verdicts):
        if verdict is not None and not (isinstance(verdict, bool | int) and verdict in VERDICTS):
            raise BadRow(f"{name}[{number}] is {shown(verdict)}: it must be true or false, or -1, 0 or 1", name)
    if not rules.deciding_aspect or all(verdict is None for verdict in verdicts):
        return None
    highest = rules.aspects[rules.deciding_aspect] - 1
    scores = [None if verdict is None else _level(verdict, highest) for verdict in verdicts]
    return SegmentLabel((rules.deciding_aspect,), tuple((score,) for score in scores))


def _level(verdict: Any, highest: int) -> int:
    # Of an even number of levels, the upper one of the two in the middle: a neutral step is none that went wrong.
    return (0, -(-highest // 2), highest)[2 * verdict if isinstance(verdict, bool) else verdict + 1]
