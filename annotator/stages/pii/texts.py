"""Gives the texts of a task by their places, and finds one string in another."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from annotator.models import PiiSpan, Task


@dataclass(frozen=True)
class Place:
    """The place of a text: the number of a turn of the conversation, or the id of a response."""

    turn: int | None = None
    response: int | None = None

    @classmethod
    def of(cls, span: PiiSpan) -> "Place":
        return cls(span.turn, span.response_id)


def texts_of(task: Task) -> dict[Place, str]:
    """Returns every text of the task that annotators read, in the order of reading."""
    turns = {Place(turn=number): turn["content"] for number, turn in enumerate(task.conversation)}
    return turns | {Place(response=response.pk): response.text for response in task.responses.all()}


def text_at(span: PiiSpan, texts: Mapping[Place, str]) -> str:
    """Returns the characters of a span, which are none if the text is shorter now or gone."""
    return texts.get(Place.of(span), "")[span.start : span.end]


def likeness(text: str, *, whole_words: bool = True) -> str:
    """Returns a regular expression for the text that allows any white space or markdown between its words."""
    words = r"[\s*_~`]+".join(re.escape(word) for word in text.split())
    before = r"(?<!\w)" if whole_words and re.match(r"\s*\w", text) else ""
    after = r"(?!\w)" if whole_words and re.search(r"\w\s*$", text) else ""
    return before + words + after


def occurrences(quote: str, text: str) -> Iterator[tuple[int, int]]:
    """Returns the ranges in which the quote occurs as whole words, or else any range in which it occurs.

    The second search serves scripts that put no space between words.
    """
    for whole_words in (True, False):
        stretches = [
            match.span() for match in re.finditer(likeness(quote, whole_words=whole_words), text, re.IGNORECASE)
        ]
        if stretches:
            return iter(stretches)
    return iter(())
