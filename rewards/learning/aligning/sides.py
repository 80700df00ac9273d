"""Turns judged rows into tokens: what the policy reads of each response, which tokens it learns, and their weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from rewards.learning.aligning.align_config import BY_SEGMENT, IMITATING, STEERLM, AlignConfig
from rewards.learning.aligning.judged_rows import JudgedPair, Row, aspects_of, attributes_of
from rewards.learning.aligning.scored_segments import (
    RewrittenResponse,
    columns,
    loss_weight,
    normalised,
    owners,
    rewards_of,
)
from rewards.learning.aligning.steering import conditioned
from rewards.learning.alike import Alike, counted, length_apart
from rewards.learning.chat_templates import UnrenderableConversation
from rewards.learning.data import Item, Turn
from rewards.learning.encoding import ChatFrame, Encoded
from rewards.learning.progress import Count, Progress


@dataclass(frozen=True)
class Side:
    """One response with its prompt as tokens.

    `columns` [learnt tokens] is the column of each token's segment, and `weights` [columns] how much each segment
    counts in the loss; without segments all tokens are in column 0, of weight 1. `dropped` counts the segments that
    own no token.
    """

    encoded: Encoded
    columns: tuple[int, ...]
    weights: tuple[float, ...]
    dropped: int = 0

    @property
    def learnt(self) -> range:
        """The places of the learnt tokens among the ids."""
        return learnt_places(self.encoded)


@dataclass(frozen=True)
class Unit:
    """What goes through the policy together: the chosen response and the rejected one, if there is one.

    `apart_at` is None where they differ. Where both are the same tokens, it is the smallest limit at which they would
    differ, or 0 if there is none.
    """

    prompt: str
    chosen: Side
    rejected: Side | None
    apart_at: int | None = None

    @property
    def sides(self) -> tuple[Side, ...]:
        return (self.chosen,) if self.rejected is None else (self.chosen, self.rejected)


def learnt_places(encoded: Encoded) -> range:
    """Returns the places of the response's tokens that have a token before them, from which they are predicted.

    The tokens that close the turn are none of them where the response was cut: to learn them would mean to learn to
    end in the middle of a sentence.
    """
    closing = encoded.closing if encoded.response_cut else 0
    return range(max(1, encoded.response_start), len(encoded.ids) - closing)


def units_of(
    rows: Sequence[Row], frame: ChatFrame, config: AlignConfig, *, progress: Progress | None = None
) -> list[Unit]:
    """Returns the rows as tokens, and beside them the rejected responses that SteerLM learns under their own levels.

    Raises:
        RewrittenResponse: the chat template changes the text of a response that has segments.
        UnrenderableConversation: the chat template refuses a conversation.
    """
    encoder = _Encoder(frame, config, normalised(config.aspect_weights, aspects_of(rows)), attributes_of(rows))
    units: list[Unit] = []
    count = Count("encode", len(rows), progress)
    for row in rows:
        count.add()
        try:
            units += _units(row, encoder)
        except (RewrittenResponse, UnrenderableConversation) as refusal:
            raise type(refusal)(f"{row.place}: {refusal}") from refusal
    return units


def without_alike(units: Sequence[Unit], config: AlignConfig) -> list[Unit]:
    """Returns the units without pairs of the same tokens; a method that imitates still learns the chosen response."""
    if config.method in IMITATING:
        return [unit if unit.apart_at is None else replace(unit, rejected=None) for unit in units]
    return [unit for unit in units if unit.apart_at is None]


def alike_units(units: Sequence[Unit], policy_frame: ChatFrame, *, most: int) -> Alike:
    """Counts the pairs of the units that are the same tokens."""
    pairs = [unit for unit in units if unit.rejected is not None]
    apart_at = [unit.apart_at for unit in pairs if unit.apart_at is not None]
    return counted(len(pairs), apart_at, max_length=policy_frame.max_length, most=most)


def _units(row: Row, encoder: _Encoder) -> Iterator[Unit]:
    # Both are read under the chosen one's levels, as a request for these levels should prefer the chosen one.
    prompt = encoder.prompt(row, row.chosen)
    chosen = encoder.side(prompt, row.chosen, chosen=True)
    rejected = None if row.rejected is None else encoder.side(prompt, row.rejected, chosen=False)
    apart_at = None
    if row.rejected and rejected and rejected.encoded.ids == chosen.encoded.ids:
        apart_at = length_apart(encoder.frame, *(Item("", prompt, one.text) for one in (row.chosen, row.rejected)))
    yield Unit(row.prompt, chosen, rejected, apart_at)
    if row.rejected and row.rejected.attributes and encoder.config.method == STEERLM:
        yield Unit(row.prompt, encoder.side(encoder.prompt(row, row.rejected), row.rejected, chosen=True), None)


@dataclass(frozen=True)
class _Encoder:
    frame: ChatFrame
    config: AlignConfig
    weights: dict[str, float]
    attributes: tuple[str, ...]
    integers: dict[int, int] = field(default_factory=dict)

    def prompt(self, row: Row, judged: JudgedPair) -> tuple[Turn, ...]:
        """Returns the conversation, and what the levels of the response are, in the same order in every row."""
        levels = judged.attributes
        return conditioned(row.conversation, {name: levels[name] for name in self.attributes if levels})

    def side(self, prompt: tuple[Turn, ...], judged: JudgedPair, *, chosen: bool) -> Side:
        located = self.frame.locate(Item("", prompt, judged.text))
        # One object for each token of the vocabulary: Python's integers take four times as much as what points to them.
        ids = tuple(self.integers.setdefault(token, token) for token in located.encoded.ids)
        located = replace(located, encoded=replace(located.encoded, ids=ids))
        learnt = learnt_places(located.encoded)
        if self.config.method not in BY_SEGMENT:
            return Side(located.encoded, (0,) * len(learnt), (1.0,))
        rewards = rewards_of(judged.segments, self.weights)
        # The spans begin with the response, the learnt tokens perhaps with its second token.
        skipped = learnt.start - located.encoded.response_start
        numbers = owners(located, judged.text, judged.segments)[skipped : skipped + len(learnt)]
        column_of = columns(numbers, rewards, chosen=chosen)
        weights = [
            loss_weight(
                rewards[number], chosen=chosen, rejected_weight=self.config.rejected_weight, levels=self.config.levels
            )
            for number in column_of
        ]
        dropped = len(judged.segments) - len(column_of)
        return Side(located.encoded, tuple(column_of[number] for number in numbers), tuple(weights), dropped)
