"""What a file says, checked: the rows that one part of an import hands to the next, whatever their layout was."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from annotator.importing.prompts import Message, content_hash, prompt_hash

RATING_BYTES = 400


@dataclass(frozen=True)
class Expert:
    """What the experts give one response: 0..4 by attribute key, and why."""

    scores: dict[str, int]
    explanation: str = ""


@dataclass(frozen=True)
class ResponseRow:
    """A response as a file gives it; in the flat layouts it has a `line` of its own."""

    text: str
    line: int = 0
    external_id: str = ""
    model: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    label: dict[str, int] = field(default_factory=dict)
    ratings: tuple[dict[str, int], ...] = ()
    expert: Expert | None = None


@dataclass(frozen=True)
class GivenPreference:
    """One imported rater's preference between the two responses."""

    strength: int
    justification: str


@dataclass(frozen=True)
class TaskRow:
    """A task as a file gives it, whatever the layout. `line` is its first, `size` counts the file's bytes for it."""

    line: int
    messages: list[Message]
    responses: tuple[ResponseRow, ...]
    external_id: str = ""
    priority: int = 0
    metadata: dict[str, Any] = field(default_factory=dict)
    preference: int | None = None
    preferences: tuple[GivenPreference, ...] = ()
    gold: str = ""
    language: str = ""
    layout: str = "tasks"
    size: int = 0

    @cached_property
    def prompt_hash(self) -> str:
        return prompt_hash(self.messages)

    @cached_property
    def content_hash(self) -> str:
        return content_hash(self.prompt_hash, [response.text for response in self.responses])

    @cached_property
    def name(self) -> str:
        """The task's id: the file's, else one made of its content."""
        return self.external_id or f"content-{self.content_hash[:24]}"

    def raters(self) -> int:
        """How many imported raters rated it."""
        return max(len(response.ratings) for response in self.responses)

    def weight(self) -> int:
        """What a batch counts it as, in bytes: each rating of a rater becomes rows of its own."""
        ratings = sum(len(response.ratings) for response in self.responses) + len(self.preferences)
        return self.size + RATING_BYTES * ratings

    def has_ratings(self) -> bool:
        """Whether it says anything about single responses."""
        return any(response.label or response.ratings for response in self.responses)


@dataclass(frozen=True)
class Rejected:
    """A row that was not taken, and why."""

    line: int
    error: str


@dataclass(frozen=True)
class Placed:
    """A checked row and where it stands: its task, and the task's responses by position where the row rates them."""

    task: int
    responses: Sequence[int]
    row: TaskRow
    is_new: bool = False
