"""The texts of a task by their places, and how one string is found in another."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from annotator.models import PiiSpan, Task


@dataclass(frozen=True)
class Place:
    """One turn of the conversation, or one response by its id."""

    turn: int | None = None
    response: int | None = None

    @classmethod
    def of(cls, span: PiiSpan) -> "Place":
        return cls(span.turn, span.response_id)


def texts_of(task: Task) -> dict[Place, str]:
    """Every text that annotators of the task read, in their order."""
    turns = {Place(turn=number): turn["content"] for number, turn in enumerate(task.conversation)}
    return turns | {Place(response=response.pk): response.text for response in task.responses.all()}


def text_at(span: PiiSpan, texts: Mapping[Place, str]) -> str:
    """The characters of a span; empty where the text has changed and is shorter now."""
    return texts.get(Place.of(span), "")[span.start : span.end]


def likeness(text: str, *, whole_words: bool = True) -> str:
    """A regular expression for the text, whatever white space or markdown stands between its words."""
    words = r"[\s*_~`]+".join(re.escape(word) for word in text.split())
    before = r"(?<!\w)" if whole_words and re.match(r"\s*\w", text) else ""
    after = r"(?!\w)" if whole_words and re.search(r"\w\s*$", text) else ""
    return before + words + after


def occurrences(quote: str, text: str) -> Iterator[tuple[int, int]]:
    """Where the quote stands as whole words; where it nowhere does, anywhere: some scripts put no space between."""
    for whole_words in (True, False):
        stretches = [
            match.span() for match in re.finditer(likeness(quote, whole_words=whole_words), text, re.IGNORECASE)
        ]
        if stretches:
            return iter(stretches)
    return iter(())
