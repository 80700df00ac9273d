"""What the annotators sent, what they were told, and when the servers were down."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from annotator.models.public_ids import response_number

Ratings = dict[int, dict[str, int]]
STORED = (200, 201)
SLACK_SECONDS = 2.0
"""How long after a kill an answer may still fail: the news has to arrive on a busy machine."""


@dataclass(frozen=True)
class Call:
    """One request and its answer. `status` is 0 where none came; then `said` names the error."""

    name: str
    port: int
    began: float
    ended: float
    status: int
    said: str = ""

    @property
    def code(self) -> str:
        """The server's own name for what is wrong."""
        return str(json.loads(self.said)["code"])

    @property
    def failed(self) -> bool:
        return self.status == 0 or self.status >= 500


@dataclass
class Sent:
    """One rating as an annotator sent it, under a text that is never used again, and every answer to it."""

    annotator: int
    assignment: int
    task: int | None
    text: str
    ratings: Ratings
    revises: bool = False
    statuses: list[int] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)

    @property
    def acknowledged(self) -> bool:
        return any(status in STORED for status in self.statuses)

    def body(self) -> dict[str, Any]:
        ratings = [{"response": response_number(number), "scores": rating} for number, rating in self.ratings.items()]
        return {"ratings": ratings, "justification": self.text}


@dataclass(frozen=True)
class Outage:
    """When something was down; on one port, or for all where `port` is 0."""

    what: str
    port: int
    began: float
    ended: float

    def explains(self, call: Call) -> bool:
        here = self.port in (0, call.port)
        return here and call.began <= self.ended + SLACK_SECONDS and call.ended >= self.began


@dataclass(frozen=True)
class Decision:
    """What the manager did, how it was answered, and after how many seconds."""

    what: str
    status: int
    seconds: float


@dataclass
class Journal:
    """Written by the crew's thread and by the weather's; read when both have ended."""

    calls: list[Call] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)
    skipped: set[int] = field(default_factory=set)
    reasons: list[tuple[int, str]] = field(default_factory=list)
    surprises: list[str] = field(default_factory=list)
    outages: list[Outage] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    acknowledged: int = 0

    @contextmanager
    def outage(self, what: str, port: int = 0) -> Iterator[None]:
        began = time.monotonic()
        yield
        self.outages.append(Outage(what, port, began, time.monotonic()))

    def failures(self) -> list[Call]:
        return [call for call in self.calls if call.failed]

    def unexplained(self) -> list[Call]:
        """Failures while everything was up."""
        return [call for call in self.failures() if not any(outage.explains(call) for outage in self.outages)]
