"""Annotators without thinking time, who claim, rate and submit again and again, each over one keep-alive connection.

It runs as a process of its own (`python -m benchmarks.load`) with the standard library alone, as it shares the machine
with the server. It reads a plan as JSON from standard input and prints an outcome as JSON.
"""

import asyncio
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

ASPECTS = ("helpfulness", "correctness", "safety", "completeness", "clarity")
ATTRIBUTES = ("helpfulness", "correctness", "coherence", "complexity", "verbosity")
FAR_AWAY = 0.05
"""The share of the ratings that disagree widely with the others, so that some tasks ask for more annotators."""
GOOD = (200, 201)
PAUSE_SECONDS = 0.2
"""The pause before somebody who got an error or no task asks again."""


@dataclass(frozen=True)
class Plan:
    """What to send. With `carry`, the answer to a submission brings the next task; else each task is asked for."""

    port: int
    project: str
    tokens: Sequence[str]
    seconds: float
    carry: bool
    seed: int = 1


@dataclass(frozen=True)
class Outcome:
    """What came of a plan: `stored` counts submissions that the server acknowledged, `empty` answers without a task.

    `calls` are the milliseconds of the calls of each kind.
    """

    seconds: float
    stored: int
    empty: int
    calls: dict[str, list[float]]
    errors: dict[str, int]

    def rate(self) -> float:
        return self.stored / self.seconds

    def cell(self, name: str, annotators: int) -> str:
        """Returns the quantiles of a kind; empty where each annotator called only once, to begin with."""
        from benchmarks.measuring import quantiles  # not for those who only make the load

        calls = self.calls.get(name, ())
        return quantiles(calls) if len(calls) > annotators else ""

    def troubles(self) -> str:
        """Returns the errors by kind, and how often there was no task."""
        empty = {"no task": self.empty} if self.empty else {}
        return ", ".join(f"{number} x {name}" for name, number in (self.errors | empty).items()) or "0"


@dataclass
class Tally:
    seconds: dict[str, list[float]] = field(default_factory=dict)
    errors: Counter[str] = field(default_factory=Counter)
    stored: int = 0
    empty: int = 0


class Connection(asyncio.Protocol):
    """One request at a time over one socket; an answer without a length counts as one without a body.

    Written by hand to take little of the processor, which the server needs.
    """

    transport: asyncio.Transport
    answer: asyncio.Future[tuple[int, bytes]]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport, self.received = transport, bytearray()
        self.answer = asyncio.get_running_loop().create_future()

    def data_received(self, data: bytes) -> None:
        self.received += data
        end = self.received.find(b"\r\n\r\n") + 4
        if end < 4:
            return
        head = bytes(self.received[:end]).lower()
        length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0] or 0)
        if len(self.received) >= end + length:
            self.answer.set_result((int(head[9:12]), bytes(self.received[end : end + length])))

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.answer.done():
            self.answer.set_exception(exc or ConnectionResetError())

    async def ask(self, request: bytes) -> tuple[int, bytes]:
        if self.transport.is_closing():
            raise ConnectionResetError
        self.received.clear()
        self.answer = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return await self.answer


class Annotator:
    """One token, one connection."""

    def __init__(self, plan: Plan, token: str, tally: Tally) -> None:
        self.plan, self.tally = plan, tally
        self.dice = random.Random(f"{plan.seed}:{token}")
        who = self.identity(token)
        self.head = f"Host: 127.0.0.1:{plan.port}\r\n{who}\r\n"
        self.connection: Connection | None = None

    def identity(self, token: str) -> str:
        """Returns the header by which the product knows the annotator."""
        return f"Authorization: Token {token}"

    async def connect(self) -> Connection:
        loop = asyncio.get_running_loop()
        _, self.connection = await loop.create_connection(Connection, "127.0.0.1", self.plan.port)
        return self.connection

    async def work(self, until: float) -> None:
        """Claims and submits until the time, in seconds of `time.perf_counter`."""
        lease = None
        while time.perf_counter() < until:
            lease = lease or await self.call("next", "POST", f"/api/v1/projects/{self.plan.project}/next/")
            if lease is None or lease["assignment"] is None:
                self.tally.empty += lease is not None
                lease = None
                await asyncio.sleep(PAUSE_SECONDS)
            else:
                lease = await self.submit(lease)

    async def submit(self, lease: dict[str, Any]) -> dict[str, Any] | None:
        """Rates and submits the task; returns the next lease if the answer brings one."""
        path = f"/api/v1/assignments/{lease['assignment']}/annotation/{'?next=1' if self.plan.carry else ''}"
        answer = await self.call("submit", "PUT", path, json.dumps(rated(lease["task"], self.dice)))
        self.tally.stored += answer is not None
        following: dict[str, Any] | None = answer["next"] if answer and self.plan.carry else None
        return following

    async def call(self, name: str, method: str, path: str, body: str = "") -> dict[str, Any] | None:
        """Returns the answer, or None after an error, which goes into the tally."""
        content = await self.exchange(name, method, path, body)
        answer: dict[str, Any] | None = None if content is None else json.loads(content)
        return answer

    async def exchange(self, name: str, method: str, path: str, body: str = "") -> bytes | None:
        """Does the same for an answer that need not be JSON."""
        kind = "" if method == "GET" else f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        request = f"{method} {path} HTTP/1.1\r\n{self.head}{kind}\r\n{body}".encode()
        start = time.perf_counter()
        try:
            connection = self.connection
            if connection is None or connection.transport.is_closing():
                connection = await self.connect()
            status, content = await connection.ask(request)
        except OSError as error:
            self.connection = None
            self.tally.errors[type(error).__name__] += 1
            return None
        self.tally.seconds.setdefault(name, []).append(time.perf_counter() - start)
        if status not in GOOD:
            self.tally.errors[f"{name}: {status}"] += 1
            return None
        return content


def rated(task: dict[str, Any], dice: random.Random) -> dict[str, Any]:
    """Returns ratings near the task's own level, the same for everyone; now and then they are far from it."""
    level = task["id"] % 5
    if dice.random() < FAR_AWAY:
        level = 0 if level >= 2 else 4
    return {"ratings": [rating(response, level, dice) for response in task["responses"]]}


def rating(response: dict[str, Any], level: int, dice: random.Random) -> dict[str, Any]:
    """Returns the scores of a response, or those of its segments where it has some."""
    if "segments" not in response:
        return {"response": response["id"], "scores": {key: near(level, dice) for key in ATTRIBUTES}}
    segments = [
        {"index": one["index"], "scores": {key: near(level, dice) for key in ASPECTS}} for one in response["segments"]
    ]
    return {"response": response["id"], "scores": {}, "segments": segments}


def near(level: int, dice: random.Random) -> int:
    return min(4, max(0, level + dice.choice((-1, 0, 0, 1))))


async def run(plan: Plan, kind: type[Annotator] = Annotator) -> Outcome:
    """Runs all annotators at once; each stops after the call that is under way when the time is up."""
    tally = Tally()
    crew = [kind(plan, token, tally) for token in plan.tokens]
    # Before the clock starts: what is measured are calls over connections that are kept.
    await asyncio.gather(*(person.connect() for person in crew))
    start = time.perf_counter()
    await asyncio.gather(*(person.work(start + plan.seconds) for person in crew))
    calls = {name: [1000 * second for second in seconds] for name, seconds in tally.seconds.items()}
    return Outcome(time.perf_counter() - start, tally.stored, tally.empty, calls, dict(tally.errors))


def main(kind: type[Annotator]) -> None:
    print(json.dumps(asdict(asyncio.run(run(Plan(**json.load(sys.stdin)), kind)))))


if __name__ == "__main__":
    main(Annotator)
