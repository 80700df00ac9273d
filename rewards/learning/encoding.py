"""Turns text into tokens, the same way for training, evaluation and serving.

The response stays whole; a prompt that is too long loses its beginning.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jinja2 import TemplateError

from rewards.learning.data import Item, Turn
from rewards.learning.refusals import Refused

PROMPT_TEMPLATE = (
    "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}"
    "{% if not loop.last %}\n\n{% endif %}{% endfor %}"
)
# The begin and end tokens are part of the text, and no tokenizer adds its own, so there are never two of either.
CONVERSATION_TEMPLATE = "{{ bos_token }}" + PROMPT_TEMPLATE + "{{ eos_token }}"
# A content that no response begins with: the response begins where its rendering differs from this one's.
SENTINEL = "\x00"
# Some chat templates (Llama 3's own) insert today's date, which would change a model's scores overnight.
FROZEN_DATE = "26 Jul 2024"


class UnrenderableConversation(Refused):
    """The model's chat template refuses the roles, or their order."""


@dataclass(frozen=True)
class Encoded:
    """The token ids of one item; the response begins at `response_start`.

    `response_tokens` counts the response's tokens before any cut; `prompt_cut` and `response_cut` count lost tokens.
    """

    ids: tuple[int, ...]
    response_start: int
    response_tokens: int
    prompt_cut: int
    response_cut: int


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

    def encode(self, item: Item) -> Encoded:
        prompt = self._tokens(render(self.tokenizer, self.template, item.conversation))
        response = self._tokens(item.response)
        room = self.max_length - len(self.before) - len(self.between) - len(self.after)
        kept = response[:room]
        tail = last(prompt, room - len(kept))
        ids = (*self.before, *tail, *self.between, *kept, *self.after)
        start = len(ids) - len(self.after) - len(kept)
        return Encoded(ids, start, len(response), len(prompt) - len(tail), len(response) - len(kept))

    def _tokens(self, text: str) -> list[int]:
        ids: list[int] = self.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
        return ids


@dataclass(frozen=True)
class ChatFrame:
    """Encodes for decoders, which read the whole conversation.

    It is rendered and tokenised once: tokens of parts that were tokenised separately differ at the seams.
    """

    tokenizer: Any
    template: str
    max_length: int

    def encode(self, item: Item) -> Encoded:
        return self.locate(item).encoded

    def locate(self, item: Item) -> Located:
        """Returns the encoded item with the place of each of its response's tokens, from one tokenisation."""
        text = render(self.tokenizer, self.template, (*item.conversation, Turn("assistant", item.response)))
        reference = render(self.tokenizer, self.template, (*item.conversation, Turn("assistant", SENTINEL)))
        boundary = common_prefix(text, reference)
        tokens = self.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
        ids: list[int] = tokens["input_ids"]
        # A token across the boundary holds some of the response, so it belongs to the response.
        start = sum(1 for _, end in tokens["offset_mapping"] if end <= boundary)
        bos = 1 if start and ids[0] == self.tokenizer.bos_token_id else 0
        room = self.max_length - bos
        places = range(start, len(ids))
        # The last token closes the turn and the reward is read there, so an overlong response loses what is before it.
        kept = places if len(places) <= room else [*places[: room - 1], places[-1]]
        tail = last(ids[bos:start], room - len(kept))
        start_kept = bos + len(tail)
        prompt_cut, response_cut = start - start_kept, len(places) - len(kept)
        whole = (*ids[:bos], *tail, *(ids[place] for place in kept))
        spans = [tokens["offset_mapping"][place] for place in kept]
        return Located(
            Encoded(whole, start_kept, len(places), prompt_cut, response_cut),
            tuple((max(0, first - boundary), end - boundary) for first, end in spans),
            text[boundary:],
        )


Frame = PairFrame | ChatFrame


def pair_frame(tokenizer: Any, *, template: str, max_length: int) -> PairFrame:
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
    return PairFrame(tokenizer, template, max_length, before, between, after)


def render(tokenizer: Any, template: str, turns: Sequence[Turn]) -> str:
    """Returns the text that the model reads; raises UnrenderableConversation where the template refuses the turns."""
    messages = [{"role": turn.role, "content": turn.content} for turn in turns]
    words = {"chat_template": template, "tokenize": False, "date_string": FROZEN_DATE}
    try:
        text: str = tokenizer.apply_chat_template(messages, **words)
    except TemplateError as refused:
        raise UnrenderableConversation(f"The chat template cannot render this conversation: {refused}") from refused
    return text


def template_hash(template: str) -> str:
    return hashlib.sha256(template.encode()).hexdigest()


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
