"""Renders conversations by chat templates: the same text for the same turns, on any day and any machine.

A conversation that a template refuses for its system turn is rendered without that role. Control tokens that stand in
people's texts are told apart from those of the template.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from jinja2 import TemplateError
from transformers.utils import chat_template_utils

from rewards.learning.data import Turn
from rewards.learning.refusals import Refused

PROMPT_TEMPLATE = (
    "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}"
    "{% if not loop.last %}\n\n{% endif %}{% endfor %}"
)
# The begin and end tokens are part of the text, and no tokenizer adds its own, so there are never two of either.
CONVERSATION_TEMPLATE = "{{ bos_token }}" + PROMPT_TEMPLATE + "{{ eos_token }}"
FIRST_RENDERING, RENDERING = 1, 2
"""The ways to turn conversations into tokens, which a model's manifest names: the first one, and today's.

The first one took control tokens in texts for real ones, began a cut prompt in the middle of a turn, and kept one token
of what closes a cut response. A model that has learnt from such tokens goes on reading them, so its scores stay.
"""
# Some chat templates (Llama 3's own) insert today's date, which would change a model's scores overnight.
FROZEN_DATE = "26 Jul 2024"
_DATE = {
    "%Y": "2024", "%y": "24", "%B": "July", "%b": "Jul", "%h": "Jul", "%m": "07", "%-m": "7", "%d": "26",
    "%-d": "26", "%e": "26", "%j": "208", "%A": "Friday", "%a": "Fri", "%H": "00", "%-H": "0", "%I": "12",
    "%-I": "12", "%M": "00", "%S": "00", "%f": "000000", "%p": "AM", "%z": "", "%Z": "", "%F": "2024-07-26",
    "%D": "07/26/24", "%T": "00:00:00", "%R": "00:00", "%x": "07/26/24", "%X": "00:00:00",
    "%c": "Fri Jul 26 00:00:00 2024", "%s": "1721952000", "%u": "5", "%w": "5", "%U": "29", "%W": "30",
    "%V": "30", "%G": "2024", "%%": "%",
}  # fmt: skip
_CLOCK = "strftime_now"
# A macro of this name takes the place of transformers' function, which reads the clock. As it is part of the template,
# other software that loads the model renders conversations as we do. The line break after it is not rendered.
FROZEN_CLOCK = (
    "{%- macro " + _CLOCK + "(format) -%}{{ format"
    + "".join(f' | replace("{code}", "{text}")' for code, text in _DATE.items())
    + " }}{%- endmacro %}\n"
)  # fmt: skip
_CLOCKS = (datetime(1999, 2, 3, 4, 5, 6, tzinfo=UTC), datetime(2031, 11, 28, 17, 48, 59, tzinfo=UTC))
TOOL_CALLS = "tool_calls"
_TRIALS = 8
"""Renderings in which a template that draws at random among two words gives the same text once in 128 times."""
_MARK = "\ufdd0"
"""Unicode's for internal use, in no text."""


class UnrenderableConversation(Refused):
    """The model's chat template refuses the roles, or their order."""


class UnsteadyTemplate(Refused):
    """The chat template renders the same conversation differently at different times."""


@dataclass(frozen=True)
class Rendering:
    """A conversation as text. `controls` are the places of the template's control tokens, start, end and id.

    They are None where no text names a control token: then all in it are the template's.
    """

    text: str
    controls: tuple[tuple[int, int, int], ...] | None = None


def frozen(template: str) -> str:
    """Returns the template with the clock stopped, if it reads one."""
    reads_clock = _CLOCK in template and not template.startswith(FROZEN_CLOCK)
    return FROZEN_CLOCK + template if reads_clock else template


def render(tokenizer: Any, template: str, turns: Sequence[Turn]) -> str:
    """Returns the text that the model reads; raises UnrenderableConversation where the template refuses the turns.

    The system turn that a template refuses goes into the first turn of the user, as users of such templates write it.
    """
    try:
        return _rendered(tokenizer, template, turns)
    except TemplateError as refused:
        error = refused
    folded = without_system(turns)
    try:
        if folded:
            return _rendered(tokenizer, template, folded)
    except TemplateError:
        pass  # the system turn was not the reason
    raise UnrenderableConversation(f"The chat template cannot render this conversation: {error}") from error


def without_system(turns: Sequence[Turn]) -> tuple[Turn, ...]:
    """Returns the turns with a first one of the system put into the user's after it; none where there is no such."""
    if len(turns) < 2 or (turns[0].role, turns[1].role) != ("system", "user"):
        return ()
    system, user, *others = turns
    return (replace(user, content=f"{system.content}\n\n{user.content}"), *others)


def _rendered(tokenizer: Any, template: str, turns: Sequence[Turn]) -> str:
    """Returns the turns as text, calls of tools and their answers as the template has them, if it knows any."""
    if TOOL_CALLS in template and any(turn.source for turn in turns):
        messages: list[dict[str, Any]] = []
        for turn in turns:
            plain: dict[str, Any] = {"role": turn.role, "content": turn.content}
            for message in map(json.loads, turn.source) if turn.source else (plain,):
                before = messages[-1] if messages else {}
                if TOOL_CALLS in message and before.get("role") == "assistant" and TOOL_CALLS not in before:
                    before[TOOL_CALLS] = message[TOOL_CALLS]
                else:
                    messages.append(message)
        try:
            text = _of_messages(tokenizer, template, messages)
        except (TemplateError, TypeError):
            text = ""  # it wants other calls: only one at once, or ids of another form
        called = [call["function"]["name"] for message in messages for call in message.get(TOOL_CALLS, ())]
        if all(name and name in text for name in called):
            return text
    return _of_messages(tokenizer, template, [{"role": turn.role, "content": turn.content} for turn in turns])


def _of_messages(tokenizer: Any, template: str, messages: list[dict[str, Any]]) -> str:
    text: str = tokenizer.apply_chat_template(
        messages, chat_template=frozen(template), tokenize=False, date_string=FROZEN_DATE
    )
    return text


def require_steady(tokenizer: Any, template: str) -> None:
    """Raises UnsteadyTemplate if the template renders a conversation differently by another clock or another chance."""
    turns = (Turn("user", "Who wrote Hamlet?"), Turn("assistant", "William Shakespeare."))
    state, texts = random.getstate(), set()
    try:
        for trial in range(_TRIALS):
            random.seed(trial)
            with _clock_at(_CLOCKS[trial % len(_CLOCKS)]):
                texts.add(render(tokenizer, template, turns))
    except UnrenderableConversation:
        return  # it wants other turns, which are refused by name where they are missing
    finally:
        random.setstate(state)
    if len(texts) > 1:
        raise UnsteadyTemplate(
            "the chat template renders the same conversation differently at different times, so its scores would not "
            "last: take what depends on the date, the clock or chance out of it"
        )


@contextmanager
def _clock_at(moment: datetime) -> Iterator[None]:
    """Lets the functions that transformers gives to templates find another time."""

    class Clock(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return moment

    names = vars(chat_template_utils)
    former = names.get("datetime")
    names["datetime"] = Clock
    try:
        yield
    finally:
        names["datetime"] = former


def template_hash(template: str) -> str:
    return hashlib.sha256(template.encode()).hexdigest()


# Control tokens --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ControlTokens:
    """The control tokens of a tokenizer, by their texts, and the patterns that find them.

    `places` also finds the masks of those that stand in people's texts.
    """

    ids: Mapping[str, int]
    names: re.Pattern[str] | None
    places: re.Pattern[str]

    def rendering(self, tokenizer: Any, template: str, turns: Sequence[Turn]) -> Rendering:
        """Returns the turns as text, with the places of the template's own control tokens if a turn names one too.

        Raises:
            UnrenderableConversation: the template refuses the turns.
        """
        names = self.names
        if names is None or not any(names.search(text) for turn in turns for text in (turn.content, *turn.source)):
            return Rendering(render(tokenizer, template, turns))
        masked = [
            Turn(turn.role, names.sub(self._mask, turn.content), tuple(names.sub(self._mask, s) for s in turn.source))
            for turn in turns
        ]
        return self._unmasked(render(tokenizer, template, masked))

    def _mask(self, found: re.Match[str]) -> str:
        return f"{_MARK}{self.ids[found[0]]}{_MARK}"

    def _unmasked(self, text: str) -> Rendering:
        named = {str(number): name for name, number in self.ids.items()}
        parts: list[str] = []
        controls: list[tuple[int, int, int]] = []
        length = read = 0
        for found in self.places.finditer(text):
            is_masked = found["masked"] is not None
            part = named.get(found["masked"], found[0]) if is_masked else found[0]
            parts += [text[read : found.start()], part]
            start = length + found.start() - read
            length, read = start + len(part), found.end()
            if not is_masked:
                controls.append((start, length, self.ids[found["name"] or found["wide"]]))
        return Rendering("".join([*parts, text[read:]]), tuple(controls))


def control_tokens(tokenizer: Any) -> ControlTokens:
    """Returns the tokenizer's control tokens; words that were added to its vocabulary are none."""
    added = {token.content: (number, token) for number, token in tokenizer.added_tokens_decoder.items()}
    special = {name: pair for name, pair in added.items() if pair[1].special and name}
    # The longest first, as one may begin with another. Some take the blanks after them.
    names, wide = (
        "|".join(re.escape(name) for name in sorted(special, key=len, reverse=True) if special[name][1].rstrip in taken)
        for taken in ((False,), (True,))
    )
    either = "|".join(filter(None, (wide, names)))
    never = "(?!)"
    places = rf"(?P<name>{names or never})|(?P<wide>{wide or never})\s*|{_MARK}(?P<masked>\d+){_MARK}"
    ids = {name: number for name, (number, _) in special.items()}
    return ControlTokens(ids, re.compile(either) if either else None, re.compile(places))
