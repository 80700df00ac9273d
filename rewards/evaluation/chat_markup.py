"""Turns text that a chat template has rendered back into the conversation and the response that it was made from.

Trainers send what their policy has read and written, special tokens included; our models render a conversation their
own way. A text in no known format is taken as one message of the user's.

The time to read a text grows linearly with its length, whoever wrote it: no pattern here backtracks over the same
characters again and again.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest

from annotator.infrastructure.refusals import Refusal

Turns = list[dict[str, str]]

SPECIAL = re.compile(r"(?:<\|\w+\|>|<｜[^｜<>]+｜>|</?s>|<bos>|<eos>|<pad>|<end_of_turn>)")
LONGEST_SPECIAL = 200
_OPENING = re.compile(rf"(?:{SPECIAL.pattern}\s*)+")
ROLES = {"system": "system", "developer": "system", "assistant": "assistant", "model": "assistant"}
TAILS = (2_000, 500, 100)
"""Lengths in characters of a prompt's end, by which the prompt is found where its beginning was cut off."""


@dataclass(frozen=True)
class Markup:
    """A family of chat templates: the pattern that opens a turn and names its role, and the marks that close it."""

    opens: re.Pattern[str]
    closes: tuple[str, ...]

    def turns(self, text: str) -> Turns:
        """Returns the turns of the text; an empty list where it is not in this markup."""
        turns = []
        for opening, rest in _parts(self.opens, text):
            places = [place for mark in self.closes if (place := rest.find(mark)) >= 0]
            turns.append(_turn(opening[1], rest[: min(places, default=len(rest))]))
        return turns


MARKUPS = (
    Markup(re.compile(r"<\|im_start\|>(\w+)\n"), ("<|im_end|>",)),  # ChatML: Qwen and many others
    Markup(re.compile(r"<\|start_header_id\|>(\w+)<\|end_header_id\|>\n\n"), ("<|eot_id|>",)),  # Llama 3
    Markup(re.compile(r"<start_of_turn>(\w+)\n"), ("<end_of_turn>",)),  # Gemma
    Markup(re.compile(r"<｜(User|Assistant)｜>"), ("<｜end▁of▁sentence｜>",)),  # DeepSeek
    Markup(re.compile(r"<\|(system|user|assistant)\|>\n?"), ("<|end|>", "</s>", "<|endoftext|>")),  # Phi, Zephyr
)
_ASKS, _ANSWERS = "[INST]", "[/INST]"  # Llama 2, Mistral
_SYSTEM = re.compile(r"^\s*<<SYS>>\n?(.*?)\n?<</SYS>>", re.DOTALL)
_NAMED = re.compile(r"^[^\S\n]*(Human|User|Assistant|System): ?", re.MULTILINE)


def item_of(query: str, prompt: str) -> dict[str, object]:
    """Returns {conversation, response} of a query, which is prompt + response as one text; raises Refusal."""
    turns = conversation_of(prompt)
    response = _without_ending(_after(query, prompt))
    if turns[-1]["role"] == "assistant" and len(turns) > 1:
        response = turns.pop()["content"] + response  # the turn that the policy was to go on with
    return {"conversation": turns, "response": response}


def conversation_of(prompt: str) -> Turns:
    """Returns the turns of a rendered prompt; the assistant's open turn, empty or begun, is the last."""
    for markup in MARKUPS:
        if turns := markup.turns(prompt):
            return turns
    if turns := _instructions(prompt):
        return turns
    if re.match(r"\s*(Human|User): ", prompt) and prompt.rstrip().endswith("\nAssistant:"):
        return [_turn(opening[1], rest.strip()) for opening, rest in _parts(_NAMED, prompt)]
    opening = _OPENING.match(prompt)
    return [_turn("user", prompt[opening.end() :] if opening else prompt)]


def _after(query: str, prompt: str) -> str:
    for known in (prompt, *(prompt[-length:] for length in TAILS if length < len(prompt))):
        _, mark, after = query.partition(known)
        if mark and known:
            return after
    raise Refusal(
        "A query must begin with its prompt. The text after the prompt is the response.",
        code="not_its_prompt",
        status=400,
    )


def _turn(role: str, content: str) -> dict[str, str]:
    return {"role": ROLES.get(role.lower(), "user"), "content": content}


def _without_ending(text: str) -> str:
    """Returns the text without the special tokens at its end and the white space after each of them."""
    # From the end backwards, a bounded stretch at a time: a pattern anchored at the end would be tried at every "<".
    end = place = len(text)
    while True:
        while place and text[place - 1].isspace():
            place -= 1
        start = text.rfind("<", max(0, place - LONGEST_SPECIAL), place)
        if start < 0 or not SPECIAL.fullmatch(text, start, place):
            return text[:end]
        end = place = start


def _instructions(text: str) -> Turns:
    turns: Turns = []
    for asked, answered in _asked_and_answered(text):
        if system := _SYSTEM.match(asked):
            turns.append(_turn("system", system[1].strip()))
            asked = asked[system.end() :]
        turns += [_turn("user", asked.strip()), _turn("assistant", _without_ending(answered).strip())]
    return turns


def _asked_and_answered(text: str) -> Iterator[tuple[str, str]]:
    """Yields every closed instruction with the text between it and the next closed one."""
    start, end = text.find(_ASKS), -1
    while start >= 0 and (end := text.find(_ANSWERS, start + len(_ASKS))) >= 0:
        asked, after = text[start + len(_ASKS) : end], end + len(_ANSWERS)
        start = text.find(_ASKS, after)
        closed = start >= 0 and text.find(_ANSWERS, start) >= 0
        yield asked, text[after : start if closed else None]


def _parts(opens: re.Pattern[str], text: str) -> Iterator[tuple[re.Match[str], str]]:
    """Yields every match of the pattern with the text from its end to the next match."""
    openings = list(opens.finditer(text))
    for opening, following in zip_longest(openings, openings[1:]):
        yield opening, text[opening.end() : following.start() if following else None]
