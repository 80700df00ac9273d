"""Turns conversations into tokens, the same way for training, evaluation and serving.

The response stays whole; a prompt that is too long loses its first turns, and its last one its beginning.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

from rewards.learning.chat_templates import (
    FIRST_RENDERING,
    RENDERING,
    ControlTokens,
    Rendering,
    UnrenderableConversation,
    control_tokens,
    render,
)
from rewards.learning.data import Item, Turn
from rewards.learning.segments import NOWHERE, Range, rendered_part, token_ranges, within

# A content that no text begins with: a text begins where its rendering differs from this one's.
SENTINEL = "\x00"


@dataclass(frozen=True)
class Encoded:
    """The token ids of one item; the response begins at `response_start`.

    `response_tokens` counts the response's tokens before any cut; `prompt_cut` and `response_cut` count lost tokens.
    `segments` are the tokens start..end of each segment of the item, NOWHERE for one that owns none. `closing` counts
    the response's last tokens, which close its turn and hold nothing of its text.
    """

    ids: tuple[int, ...]
    response_start: int
    response_tokens: int
    prompt_cut: int
    response_cut: int
    segments: tuple[Range, ...] = ()
    closing: int = 0


@dataclass(frozen=True)
class Located:
    """An encoded item, and where its response's tokens stand in the text.

    `rendered` is the text from the response's first character on, as the template renders it. `spans` has the
    characters start..end of it that each token of the response holds, for the tokens that the limit left.
    """

    encoded: Encoded
    spans: tuple[tuple[int, int], ...]
    rendered: str


@dataclass(frozen=True)
class Truncation:
    """The effect of the token limit: prompts that lost their beginning, and responses that alone exceed the limit."""

    items: int
    prompts_cut: int
    responses_cut: int


@dataclass(frozen=True)
class PairFrame:
    """Encodes for encoders, which read the pair that their tokenizer makes: [CLS] prompt [SEP] response [SEP].

    `before`, `between` and `after` are the special tokens around the two texts.
    """

    tokenizer: Any
    template: str
    max_length: int
    before: tuple[int, ...]
    between: tuple[int, ...]
    after: tuple[int, ...]
    rendering: int = RENDERING

    def encode(self, item: Item) -> Encoded:
        with naming(item):
            # Offsets take time, and only segments need them.
            response, spans = self._tokens(item.response, offsets=bool(item.segments))
            room = self.max_length - len(self.before) - len(self.between) - len(self.after)
            kept = response[:room]
            prompt, lost = self._prompt(item.conversation, room - len(kept))
            ids = (*self.before, *prompt, *self.between, *kept, *self.after)
            start = len(ids) - len(self.after) - len(kept)
            encoded = Encoded(ids, start, len(response), lost, len(response) - len(kept))
            return segmented(Located(encoded, tuple(spans[: len(kept)]), item.response), item)

    def _prompt(self, conversation: Sequence[Turn], room: int) -> tuple[list[int], int]:
        """Returns the tokens of the prompt, at most `room` of them, and how many were lost."""
        whole, _ = self._tokens(self._rendered(conversation))
        if len(whole) <= room or self.rendering == FIRST_RENDERING:
            return last(whole, room), max(0, len(whole) - room)
        turns = longest_end(conversation, lambda end: len(self._tokens(self._rendered(end))[0]) <= room)
        text = self._rendered(turns)
        ids, spans = self._tokens(text, offsets=True)
        if len(ids) > room:
            ids = without_beginning(ids, spans, text, self._rendered(marked(turns)), excess=len(ids) - room)
        return last(ids, room), max(1, len(whole) - len(ids))

    def _rendered(self, turns: Sequence[Turn]) -> str:
        return render(self.tokenizer, self.template, turns)

    def _tokens(self, text: str, *, offsets: bool = False) -> tuple[list[int], list[Range]]:
        """Returns the tokens of a text, with their places if they are wanted; a text holds no control tokens."""
        tokens = self.tokenizer(
            text,
            add_special_tokens=False,
            return_offsets_mapping=offsets,
            split_special_tokens=self.rendering != FIRST_RENDERING,
            verbose=False,
        )
        return tokens["input_ids"], tokens["offset_mapping"] if offsets else []


@dataclass(frozen=True)
class Reading:
    """A conversation with its response as tokens, before any cut.

    `spans` are the characters of `text` that each token holds. The response begins at the character `boundary`, which
    is in the token `start`; `closing` tokens at the end only close its turn.
    """

    text: str
    ids: list[int]
    spans: list[Range]
    boundary: int
    start: int
    closing: int


@dataclass(frozen=True)
class ChatFrame:
    """Encodes for decoders, which read the whole conversation.

    It is rendered and tokenised once: tokens of parts that were tokenised separately differ at the seams.
    """

    tokenizer: Any
    template: str
    max_length: int
    rendering: int = RENDERING

    def encode(self, item: Item) -> Encoded:
        with naming(item):
            return segmented(self.locate(item), item)

    def locate(self, item: Item) -> Located:
        """Returns the encoded item with the place of each of its response's tokens, from one tokenisation."""
        whole = reading = self._read(item.conversation, item.response)
        if len(whole.ids) > self.max_length and self.rendering != FIRST_RENDERING:
            reading = self._shortened(item)
        ids, places = reading.ids, range(reading.start, len(reading.ids))
        bos = 1 if reading.start and ids[0] == self.tokenizer.bos_token_id else 0
        room = self.max_length - bos
        # What closes the turn stays, as the reward is read there: an overlong response loses what is before it.
        closing = 1 if self.rendering == FIRST_RENDERING else min(reading.closing, room)
        kept = places if len(places) <= room else [*places[: room - closing], *places[len(places) - closing :]]
        tail = last(ids[bos : reading.start], room - len(kept))
        prompt = (*ids[:bos], *tail)
        prompt_cut = whole.start - len(prompt)
        if reading is not whole or prompt_cut > 0:
            # Where the first turns are gone, a template may write a preamble of its own.
            prompt_cut = max(1, prompt_cut)
        spans = [reading.spans[place] for place in kept]
        return Located(
            Encoded(
                (*prompt, *(ids[place] for place in kept)),
                len(prompt),
                len(places),
                prompt_cut,
                len(places) - len(kept),
                closing=closing,
            ),
            tuple((max(0, first - reading.boundary), end - reading.boundary) for first, end in spans),
            reading.text[reading.boundary :],
        )

    def _read(self, conversation: Sequence[Turn], response: str) -> Reading:
        rendering = self._rendering((*conversation, Turn("assistant", response)))
        reference = self._rendering((*conversation, Turn("assistant", SENTINEL))).text
        text, boundary = rendering.text, common_prefix(rendering.text, reference)
        end = len(text) - common_prefix(text[boundary:][::-1], reference[::-1])
        ids, spans = self._tokens(rendering)
        # A token across the boundary holds some of the response, so it belongs to the response.
        start = sum(1 for _, last_character in spans if last_character <= boundary)
        closing = sum(1 for first, _ in spans[start:] if first >= end)
        return Reading(text, ids, spans, boundary, start, closing)

    def _shortened(self, item: Item) -> Reading:
        """Returns the longest end of the conversation that fits, as tokens.

        Where not even its last part fits, that is without the beginning of its first turn.
        """

        def fits(turns: Sequence[Turn]) -> bool:
            return len(self._read(turns, item.response).ids) <= self.max_length

        turns = longest_end(item.conversation, fits)
        reading = self._read(turns, item.response)
        excess = len(reading.ids) - self.max_length
        if excess <= 0:
            return reading
        reference = self._rendering((*marked(turns), Turn("assistant", item.response))).text
        prompt = reading.ids[: reading.start]
        left = without_beginning(prompt, reading.spans[: reading.start], reading.text, reference, excess=excess)
        lost = len(prompt) - len(left)
        ids, spans = [*left, *reading.ids[reading.start :]], reading.spans[lost:]
        return replace(reading, ids=ids, spans=spans, start=reading.start - lost)

    @cached_property
    def _controls(self) -> ControlTokens:
        return control_tokens(self.tokenizer)

    def _rendering(self, turns: Sequence[Turn]) -> Rendering:
        if self.rendering == FIRST_RENDERING:
            return Rendering(render(self.tokenizer, self.template, turns))
        return self._controls.rendering(self.tokenizer, self.template, turns)

    def _tokens(self, rendering: Rendering) -> tuple[list[int], list[Range]]:
        """Returns the tokens and the characters that each holds."""
        if rendering.controls is None:
            return self._plain_tokens(rendering.text)
        ids: list[int] = []
        spans: list[Range] = []
        # A tokenizer cuts the text at control tokens as well, so that nothing changes at these seams.
        bounds = [(0, 0, -1), *rendering.controls, (len(rendering.text), len(rendering.text), -1)]
        for (_, begin, _), (end, after, control) in pairwise(bounds):
            numbers, places = self._plain_tokens(rendering.text[begin:end], split=True)
            ids += numbers
            spans += [(first + begin, stop + begin) for first, stop in places]
            if control >= 0:
                ids.append(control)
                spans.append((end, after))
        return ids, spans

    def _plain_tokens(self, text: str, *, split: bool = False) -> tuple[list[int], list[Range]]:
        tokens = self.tokenizer(
            text,
            add_special_tokens=False,
            return_offsets_mapping=True,
            split_special_tokens=split,
            verbose=False,
        )
        return tokens["input_ids"], tokens["offset_mapping"]


Frame = PairFrame | ChatFrame


def segmented(located: Located, item: Item) -> Encoded:
    """Returns the encoded item with the tokens of its segments."""
    if not item.segments:
        return located.encoded
    part = rendered_part(located.rendered, item.response)
    if part is None:
        return replace(located.encoded, segments=(NOWHERE,) * len(item.segments))
    spans = [(start + part[0], end + part[0]) for start, end in located.spans]
    ranges = token_ranges(spans, within(item.segments, part), first=located.encoded.response_start)
    return replace(located.encoded, segments=ranges)


def pair_frame(tokenizer: Any, *, template: str, max_length: int, rendering: int = RENDERING) -> PairFrame:
    """Returns the frame of an encoder's tokenizer, whose special tokens are found by encoding a pair of letters."""
    probe = tokenizer("a", "b")
    special: list[list[int]] = [[], [], []]
    texts_passed = 0
    for token, sequence in zip(probe["input_ids"], probe.sequence_ids(0), strict=True):
        if sequence is None:
            special[texts_passed].append(token)
        else:
            texts_passed = sequence + 1
    before, between, after = map(tuple, special)
    return PairFrame(tokenizer, template, max_length, before, between, after, rendering)


@contextmanager
def naming(item: Item) -> Iterator[None]:
    """Names the item, if it has an id, where a template refuses its conversation."""
    try:
        yield
    except UnrenderableConversation as refusal:
        if not item.id:
            raise
        raise UnrenderableConversation(f"response {item.id}: {refusal}") from refusal


def longest_end(conversation: Sequence[Turn], fits: Callable[[Sequence[Turn]], bool]) -> Sequence[Turn]:
    """Returns the longest end of the conversation that begins with what the user says, and fits.

    Where none fits it is the shortest one, and the whole conversation where no turn is the user's.
    """
    starts = [place for place, turn in enumerate(conversation) if place and turn.role == "user" and not turn.source]
    if not starts:
        return conversation
    place = bisect_left(starts, True, key=lambda start: fits(conversation[start:]))
    return conversation[starts[min(place, len(starts) - 1)] :]


def marked(turns: Sequence[Turn]) -> tuple[Turn, ...]:
    """Returns the turns with a mark for the content of the first one."""
    return (replace(turns[0], content=SENTINEL), *turns[1:])


def without_beginning(ids: list[int], spans: Sequence[Range], text: str, reference: str, *, excess: int) -> list[int]:
    """Returns the tokens of a prompt without the first ones of its first turn's text, of which there are too many.

    What opens the turn stays. `reference` is the text with a mark for that turn's. Where nothing of its text
    would be left, the prompt is returned as it is.
    """
    begin = common_prefix(text, reference)
    end = len(text) - common_prefix(text[::-1], reference[::-1])
    own = [place for place, (first, stop) in enumerate(spans) if begin <= first and stop <= end]
    if len(own) <= excess:
        return ids
    return ids[: own[0]] + ids[own[0] + excess :]


def truncation_of(encoded: Sequence[Encoded]) -> Truncation:
    """Counts the items that the token limit cut."""
    prompts, responses = (e.prompt_cut > 0 for e in encoded), (e.response_cut > 0 for e in encoded)
    return Truncation(len(encoded), sum(prompts), sum(responses))


def common_prefix(a: str, b: str) -> int:
    """Returns the number of characters that both texts begin with."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def last(tokens: list[int], count: int) -> list[int]:
    """Returns the last `count` tokens; for 0 none, where tokens[-0:] would be all of them."""
    return tokens[len(tokens) - min(count, len(tokens)) :]
