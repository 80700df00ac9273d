"""Reads the rows that a policy is aligned by. A row that cannot be used is refused with its file, line and field."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rewards.learning.aligning.align_config import BY_SEGMENT, IMITATING, STEERLM, AlignConfig
from rewards.learning.data import BadRow, LeakedPrompt, Turn, read_rows
from rewards.learning.refusals import Refused

LONGEST_SHOWN = 40


class NoRows(Refused):
    """A file has no rows, or all of them were held out."""


@dataclass(frozen=True)
class ScoredSpan:
    """The characters start..end of a response, with a score from 0 to levels - 1 for each aspect."""

    start: int
    end: int
    scores: Mapping[str, float]


@dataclass(frozen=True)
class JudgedPair:
    """A response with what people said of it: segments that cover the whole text, or levels of attributes."""

    text: str
    segments: tuple[ScoredSpan, ...] = ()
    attributes: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Row:
    """A conversation with the response that people chose, and the one that they rejected, if there is one.

    `place` is the file and the line that it comes from, for what is to be said of it.
    """

    place: str
    conversation: tuple[Turn, ...]
    chosen: JudgedPair
    rejected: JudgedPair | None

    @property
    def prompt(self) -> str:
        """A hash of the conversation, which tells prompts apart."""
        turns = [[turn.role, turn.content] for turn in self.conversation]
        return hashlib.sha256(json.dumps(turns).encode()).hexdigest()


def read_judged(path: Path, config: AlignConfig) -> list[Row]:
    """Returns the rows of a JSONL file, with what the configured method reads of them.

    Raises:
        MissingFile, NoRows: there is no such file, or nothing in it.
        BadRow: a row cannot be used.
    """
    rows: list[Row] = []
    for number, raw in read_rows(path):
        place = f"{path.name}, line {number}"
        try:
            rows.append(_row(place, raw, config))
            _compare(rows[0], rows[-1])
        except ValueError as error:
            raise BadRow(f"{place}: {error}") from None
    if not rows:
        raise NoRows(f"{path.name} has no rows: write one JSON object a line, each with conversation and chosen")
    return rows


def read_prompts(path: Path) -> list[tuple[str, tuple[Turn, ...]]]:
    """Returns the id and the turns of each row {"id", "conversation"} of a JSONL file.

    Raises:
        MissingFile: there is no such file.
        BadRow: a row cannot be used.
    """
    prompts = []
    for number, raw in read_rows(path):
        try:
            prompts.append((_text(raw, "id"), tuple(_turns(raw))))
        except ValueError as error:
            raise BadRow(f"{path.name}, line {number}: {error}") from None
    return prompts


def carve_held_out(rows: Sequence[Row], share: float) -> tuple[list[Row], list[Row]]:
    """Divides rows into (train, held out) by a hash of the prompt, so that no prompt is on both sides."""
    order = sorted({row.prompt for row in rows}, key=lambda p: hashlib.sha256(f"held out:{p}".encode()).digest())
    held_out = set(order[: round(share * len(order))])
    return [row for row in rows if row.prompt not in held_out], [row for row in rows if row.prompt in held_out]


def aspects_of(rows: Sequence[Row]) -> tuple[str, ...]:
    """Returns the aspects that the segments of the first row have, which are those of every row."""
    return tuple(rows[0].chosen.segments[0].scores) if rows and rows[0].chosen.segments else ()


def attributes_of(rows: Sequence[Row]) -> tuple[str, ...]:
    """Returns the attributes that the first row has, which are those of every row."""
    return tuple(rows[0].chosen.attributes) if rows else ()


def _row(place: str, raw: Mapping[str, Any], config: AlignConfig) -> Row:
    conversation = tuple(_turns(raw))
    chosen = _judged(raw, "chosen", config)
    if "rejected" not in raw and config.method in IMITATING:
        return Row(place, conversation, chosen, None)
    rejected = _judged(raw, "rejected", config)
    if rejected.text == chosen.text and config.method not in IMITATING:
        raise ValueError("chosen and rejected are the same text, which compares nothing: leave the row out")
    return Row(place, conversation, chosen, rejected)


def _turns(raw: Mapping[str, Any]) -> Iterator[Turn]:
    rows = _field(raw, "conversation")
    if not isinstance(rows, list) or not rows:
        raise ValueError('conversation must be a list of turns, like [{"role": "user", "content": "..."}]')
    for number, row in enumerate(rows):
        place = f"conversation[{number}]"
        if not isinstance(row, dict):
            raise ValueError(f"{place} must be an object with role and content, not {_shown(row)}")
        yield Turn(_text(row, "role", place), _text(row, "content", place))
    if rows[-1]["role"] == "assistant":
        raise ValueError("conversation ends with an assistant's turn: end it with the turn that the responses answer")


def _judged(raw: Mapping[str, Any], side: str, config: AlignConfig) -> JudgedPair:
    text = _text(raw, side)
    if not text.strip():
        raise ValueError(f"{side} is empty: a response needs some text")
    segments = tuple(_segments(raw, side, text, config)) if config.method in BY_SEGMENT else ()
    name = "attributes" if side == "chosen" else "rejected_attributes"
    # A rejected response is trained on only where its own levels are known.
    has_levels = config.method == STEERLM and (side == "chosen" or name in raw)
    return JudgedPair(text, segments, _levels(raw, name, config) if has_levels else {})


def _segments(raw: Mapping[str, Any], side: str, text: str, config: AlignConfig) -> Iterator[ScoredSpan]:
    """Yields the segments; blank characters between two of them go to the one before."""
    name = f"{side}_segments"
    rows = _field(raw, name)
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise ValueError(f"{name} must be a list of objects with start, end and scores")
    bounds = [_bounds(row, f"{name}[{number}]", text) for number, row in enumerate(rows)]
    for number, row in enumerate(rows):
        start, end = bounds[number]
        after = bounds[number + 1][0] if number + 1 < len(rows) else len(text)
        if after < end:
            raise ValueError(f"{name}[{number + 1}] begins at {after}, before the end {end} of the segment before it")
        _require_blank(text, end, after, name)
        yield ScoredSpan(start if number else 0, after, _scores(row, f"{name}[{number}]", config))
    _require_blank(text, 0, bounds[0][0], name)


def _bounds(row: Mapping[str, Any], place: str, text: str) -> tuple[int, int]:
    start, end = (_whole(row, name, place) for name in ("start", "end"))
    if not 0 <= start < end <= len(text):
        raise ValueError(
            f"{place} is {start} to {end}: start must be below end, and both must lie within the {len(text)} "
            "characters of the response"
        )
    return start, end


def _require_blank(text: str, start: int, end: int, name: str) -> None:
    if text[start:end].strip():
        raise ValueError(
            f"the characters {start} to {end} are in no segment of {name}: every part of the response needs one"
        )


def _scores(row: Mapping[str, Any], place: str, config: AlignConfig) -> dict[str, float]:
    scores = _field(row, "scores", place)
    if not isinstance(scores, dict) or not scores:
        raise ValueError(f"{place}.scores must be an object with a number for each aspect, not {_shown(scores)}")
    lacking = [name for name in config.aspect_weights if name not in scores]
    if lacking:
        raise ValueError(
            f"{place}.scores lacks {', '.join(lacking)}: score every aspect that aspect_weights names, or leave it out "
            "of them"
        )
    return {name: _score(value, f"{place}.scores.{name}", config.levels) for name, value in scores.items()}


def _levels(raw: Mapping[str, Any], name: str, config: AlignConfig) -> dict[str, int]:
    levels = _field(raw, name)
    if not isinstance(levels, dict) or not levels:
        raise ValueError(f"{name} must be an object with a level for each attribute, not {_shown(levels)}")
    for key, value in levels.items():
        if _score(value, f"{name}.{key}", config.levels) != int(value):
            raise ValueError(f"{name}.{key} must be a whole number, not {value}: round it to a level")
    return {key: int(value) for key, value in levels.items()}


def require_apart(train: Sequence[Row], held_out: Sequence[Row]) -> None:
    """Raises unless two files fit together, and the policy is not judged by prompts that it has learnt.

    Raises:
        BadRow: the held-out rows have other aspects or attributes.
        LeakedPrompt: both files have the same prompt.
    """
    try:
        _compare(train[0], held_out[0])
    except ValueError as error:
        raise BadRow(f"{held_out[0].place}: {error}") from None
    places = {row.prompt: row.place for row in train}
    leaked = [row for row in held_out if row.prompt in places]
    if leaked:
        raise LeakedPrompt(
            f"{len(leaked)} held-out rows have the prompt of a train row, as {leaked[0].place} has that of "
            f"{places[leaked[0].prompt]}: leave them out of one of the files"
        )


def _compare(first: Row, row: Row) -> None:
    """Raises ValueError unless all segments have the first row's aspects, and all levels are of its attributes."""
    aspects, attributes = set(aspects_of([first])), set(first.chosen.attributes)
    for judged in (row.chosen, row.rejected):
        if judged is None:
            continue
        for segment in judged.segments:
            if set(segment.scores) != aspects:
                raise ValueError(_differing("a segment has scores for", segment.scores, aspects))
        if judged.attributes and set(judged.attributes) != attributes:
            raise ValueError(_differing("it has the attributes", judged.attributes, attributes))


def _differing(what: str, own: Mapping[str, Any], first: set[str]) -> str:
    return f"{what} {', '.join(sorted(own))}, but the first row has {', '.join(sorted(first))}: make them the same"


def _field(row: Mapping[str, Any], name: str, place: str = "") -> Any:
    if name not in row:
        raise ValueError(f"{place or 'the row'} lacks {name}")
    return row[name]


def _text(row: Mapping[str, Any], name: str, place: str = "") -> str:
    value = _field(row, name, place)
    if not isinstance(value, str):
        raise ValueError(f"{f'{place}.' if place else ''}{name} must be text, not {_shown(value)}")
    return value


def _whole(row: Mapping[str, Any], name: str, place: str) -> int:
    value = _field(row, name, place)
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{place}.{name} must be a whole number of characters, not {_shown(value)}")
    return value


def _score(value: Any, place: str, levels: int) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= levels - 1:
        raise ValueError(
            f"{place} is {_shown(value)}, not a number from 0 to {levels - 1}: if the scale has more levels, set levels"
        )
    return float(value)


def _shown(value: Any) -> str:
    return json.dumps(value)[:LONGEST_SHOWN]
