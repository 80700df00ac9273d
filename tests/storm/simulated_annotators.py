"""Annotators who claim, lease ahead, dawdle, forget, skip, click twice, change their minds, and ask until answered."""

import asyncio
import json
import random
import sys
import threading
import time
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from annotator.models.public_ids import response_of, task_of
from benchmarks.load import ATTRIBUTES, Connection, near
from tests.storm.journal import STORED, Call, Journal, Ratings, Sent
from tests.storm.preparing import SLUG

Json = dict[str, Any]
HABITS = {"rate": 78, "heartbeat": 7, "dawdle": 4, "forget": 3, "give back": 2, "regret": 3, "skip": 3}
"""How often an annotator does what with a task, in a hundred."""
RATING = ("rate", "heartbeat", "dawdle", "regret")
SIT_SECONDS = (0.3, 1.5)
CARRY, TWICE, AGAIN, REVISE, FAR_AWAY = 0.5, 0.1, 0.05, 0.04, 0.1
"""Shares of the ratings: asking for the next task, sent twice at once, sent again, changed later, far from others."""
STOCK, CLOSE = 0.7, 0.05
"""Shares of the tasks of whoever leases ahead: asking for more of them, giving back what was not shown."""
PAUSE_SECONDS, IDLE_SECONDS = 0.1, 0.5
ANSWER_SECONDS = 60
LAST_WORDS = ("all_done", "you_did_all")
EXCLUDED = 5
"""The one of the crew who is excluded in the middle, and comes back later."""
LEAVERS = 2
"""The last ones of the crew leave half-way, without waiting for the answer."""
UNLOVED, FANS = 3, 2
"""The first tasks are skipped by everybody but the first annotators: they can never be complete."""


class Stopped(Exception):
    """The weather has failed: nobody goes on."""


@dataclass(frozen=True)
class Answer:
    status: int
    data: Any


@dataclass
class Crew:
    """What the annotators share.

    `sitting` are assignments whose leases should run out soon, `acts` how often somebody has dealt with a task, and
    `idle` who was told that nothing is left, after how many acts. `calm` is set once nothing more will happen to them.
    """

    ports: Sequence[int]
    tokens: Sequence[str]
    tasks: int
    journal: Journal = field(default_factory=Journal)
    sitting: set[int] = field(default_factory=set)
    acts: int = 0
    idle: dict[int, int] = field(default_factory=dict)
    stop: threading.Event = field(default_factory=threading.Event)
    calm: threading.Event = field(default_factory=threading.Event)

    def progress(self) -> float:
        """The share of the ratings that the tasks want at least."""
        return self.journal.acknowledged / (3 * self.tasks)

    def all_idle(self) -> bool:
        """Only then may anybody go: the last rating, or the manager, may have a task ask for more annotators."""
        return self.calm.is_set() and len(self.idle) == len(self.tokens) and min(self.idle.values()) >= self.acts

    async def work(self) -> None:
        """Until all of them were told that nothing is left."""
        everybody = [Annotator(number, token, self) for number, token in enumerate(self.tokens, start=1)]
        try:
            with suppress(Stopped):
                await asyncio.gather(*(person.work() for person in everybody))
        finally:
            for person in everybody:
                person.hang_up()


class Annotator:
    """One token and two connections, each to whichever server answers."""

    def __init__(self, number: int, token: str, crew: Crew) -> None:
        self.number, self.token, self.crew, self.journal = number, token, crew, crew.journal
        self.dice = random.Random(f"storm:{number}")
        self.lines: dict[int, tuple[int, Connection]] = {}
        self.texts = 0
        self.leases_ahead, self.shift, self.shelf = number % 2 == 0, str(uuid.uuid4()), list[Json]()
        self.had: set[int] = set()

    # What they do ------------------------------------------------------------------------------------------

    async def work(self) -> None:
        lease: Json | None = None
        while True:
            acts = self.crew.acts
            lease = lease or self.from_shelf() or await self.claim()
            self.crew.idle.pop(self.number, None)
            if lease["assignment"] is None:
                await self.rest(lease["reason"], acts)
                lease = None
                if self.crew.all_idle():
                    return
            elif self.leaves(lease):
                await self.send_and_leave(lease)
                return
            else:
                lease = await self.deal_with(lease)
                self.crew.acts += 1

    async def rest(self, reason: str, acts: int) -> None:
        self.journal.reasons.append((self.number, reason))
        if reason in (*LAST_WORDS, "excluded"):
            self.crew.idle[self.number] = acts
        await asyncio.sleep(IDLE_SECONDS)

    def leaves(self, lease: Json) -> bool:
        return self.number > len(self.crew.tokens) - LEAVERS and self.crew.progress() > 0.5 and not unloved(lease)

    async def claim(self) -> Json:
        clicks = 2 if self.chance(TWICE) else 1
        path = f"projects/{SLUG}/next/"
        answers = await asyncio.gather(*(self.answered("next", "POST", path, line=line) for line in range(clicks)))
        for answer in answers:
            self.check(answer, answer.status == 200)
        claimed: Json = answers[-1].data if answers[-1].status == 200 else {"assignment": None, "reason": "refused"}
        return claimed

    def from_shelf(self) -> Json | None:
        self.shelf = [lease for lease in self.shelf if lease["assignment"] not in self.had]
        return self.shelf.pop(0) if self.shelf else None

    async def look_ahead(self, shown: int) -> None:
        """What is kept is rated later without another word, as in a browser without a network."""
        body = {"shift": self.shift, "shown": shown}
        answer = await self.answered("ahead", "POST", f"projects/{SLUG}/ahead/", body)
        self.check(answer, answer.status == 200)
        self.shelf = answer.data["leases"] if answer.status == 200 else []
        if self.chance(CLOSE):
            answer = await self.answered("let go", "DELETE", f"projects/{SLUG}/ahead/?shift={self.shift}")
            self.check(answer, answer.status == 204)
            self.shelf = []

    async def deal_with(self, lease: Json) -> Json | None:
        """The next lease, where an answer brought one."""
        self.had.add(lease["assignment"])
        if self.leases_ahead and self.chance(STOCK):
            await self.look_ahead(lease["assignment"])
        (habit,) = self.dice.choices(list(HABITS), weights=list(HABITS.values()))
        if unloved(lease):
            habit = "skip" if self.number > FANS else "rate"
        assignment = lease["assignment"]
        if habit == "skip":
            await self.skip(assignment)
        if habit in ("give back", "regret"):
            await self.give_back(assignment)
        if habit == "regret":
            await asyncio.sleep(self.dice.uniform(*SIT_SECONDS))
        if habit in ("dawdle", "forget"):
            await self.sit(assignment)
        if habit == "heartbeat":
            await self.beat(assignment)
        return await self.rate(lease) if habit in RATING else None

    async def skip(self, assignment: int) -> None:
        clicks = 2 if self.chance(TWICE) else 1
        skips = [self.ask("skip", "POST", f"{assignment}/skip/", {"reason": "other"}, line) for line in range(clicks)]
        answers = await asyncio.gather(*skips)
        for answer in answers:
            self.check(answer, answer.status == 200 or self.is_barred(answer))
        if any(answer.status == 200 for answer in answers):
            self.journal.skipped.add(assignment)

    def is_barred(self, answer: Answer) -> bool:
        return self.number == EXCLUDED and answer.status == 409 and answer.data["code"] == "not_at_work"

    async def give_back(self, assignment: int) -> None:
        answer = await self.ask("release", "DELETE", f"{assignment}/")
        self.check(answer, answer.status == 204 or answer.data["code"] == "not_leased")

    async def sit(self, assignment: int) -> None:
        self.crew.sitting.add(assignment)
        await asyncio.sleep(self.dice.uniform(*SIT_SECONDS))
        self.crew.sitting.discard(assignment)

    async def beat(self, assignment: int) -> None:
        answer = await self.ask("heartbeat", "POST", f"{assignment}/heartbeat/")
        self.check(answer, answer.status == 200 or answer.data["code"] == "not_leased")

    def check(self, answer: Answer, fine: bool) -> None:
        if not fine:
            self.journal.surprises.append(repr(answer))

    async def rate(self, lease: Json) -> Json | None:
        sent = self.written(lease["assignment"], task_of(lease["task"]["id"]), self.opinion(lease["task"]))
        carry = self.chance(CARRY)
        clicks = 2 if self.chance(TWICE) else 1
        answers = await asyncio.gather(*(self.submit(sent, carry, line) for line in range(clicks)))
        self.journal.acknowledged += sent.acknowledged
        if self.chance(AGAIN):
            answers.append(await self.submit(sent, carry))
        if self.chance(REVISE):
            await self.submit(self.revised(sent), carry=False)
        following: Json | None = answers[-1].data.get("next")
        return following if following and following["assignment"] else None

    async def send_and_leave(self, lease: Json) -> None:
        sent = self.written(lease["assignment"], task_of(lease["task"]["id"]), self.opinion(lease["task"]))
        request = self.request("PUT", f"assignments/{sent.assignment}/annotation/", sent.body())
        with suppress(OSError):
            connection = await self.connection(0, self.port(0))
            connection.transport.write(request)
            connection.transport.close()
        self.crew.idle[self.number] = sys.maxsize

    # What they think ---------------------------------------------------------------------------------------

    def chance(self, share: float) -> bool:
        return self.dice.random() < share

    def opinion(self, task: Json) -> Ratings:
        """Helpfulness near the task's own level but for a few who see it quite otherwise; the rest by dice."""
        level = task["id"] % 5
        if self.chance(FAR_AWAY):
            level = 0 if level >= 2 else 4
        return {
            response_of(response["id"]) or 0: {key: self.dice.randrange(5) for key in ATTRIBUTES}
            | {"helpfulness": near(level, self.dice)}
            for response in task["responses"]
        }

    def written(self, assignment: int, task: int | None, ratings: Ratings, *, revises: bool = False) -> Sent:
        self.texts += 1
        sent = Sent(self.number, assignment, task, f"{self.number}-{self.texts}", ratings, revises)
        self.journal.sent.append(sent)
        return sent

    def revised(self, sent: Sent) -> Sent:
        """Helpfulness stays, which alone decides how many annotators a task wants."""
        ratings = {rating: scores | {"verbosity": self.dice.randrange(5)} for rating, scores in sent.ratings.items()}
        return self.written(sent.assignment, sent.task, ratings, revises=True)

    # How they ask ------------------------------------------------------------------------------------------

    async def submit(self, sent: Sent, carry: bool, line: int = 0) -> Answer:
        path = f"{sent.assignment}/annotation/{'?next=1' if carry else ''}"
        answer = await self.ask("submit", "PUT", path, sent.body(), line)
        sent.statuses.append(answer.status)
        if answer.status not in STORED:
            sent.refusals.append(answer.data["code"])
        return answer

    async def ask(self, name: str, method: str, path: str, body: Json | None = None, line: int = 0) -> Answer:
        return await self.answered(name, method, f"assignments/{path}", body, line)

    async def answered(self, name: str, method: str, path: str, body: Json | None = None, line: int = 0) -> Answer:
        """Asks again, the same, until there is an answer that is not the server's own failure."""
        request = self.request(method, path, body)
        while not self.crew.stop.is_set():
            answer = await self.asked(name, request, line)
            if answer:
                return answer
            await asyncio.sleep(PAUSE_SECONDS)
        raise Stopped

    async def asked(self, name: str, request: bytes, line: int) -> Answer | None:
        began, port = time.monotonic(), self.port(line)
        try:
            connection = await self.connection(line, port)
            status, content = await asyncio.wait_for(connection.ask(request), ANSWER_SECONDS)
        except OSError as error:
            self.lines.pop(line, None)
            self.journal.calls.append(Call(name, port, began, time.monotonic(), 0, repr(error)))
            return None
        said = content.decode()
        self.journal.calls.append(Call(name, port, began, time.monotonic(), status, said if status >= 400 else ""))
        return Answer(status, json.loads(said or "null")) if status < 500 else None

    def port(self, line: int) -> int:
        """Of the line's last connection, unless the server has hung up; then of any server."""
        if line in self.lines and not self.lines[line][1].transport.is_closing():
            return self.lines[line][0]
        self.lines.pop(line, None)
        return self.dice.choice(self.crew.ports)

    async def connection(self, line: int, port: int) -> Connection:
        if line not in self.lines:
            _, made = await asyncio.get_running_loop().create_connection(Connection, "127.0.0.1", port)
            self.lines[line] = (port, made)
        return self.lines[line][1]

    def request(self, method: str, path: str, body: Json | None) -> bytes:
        content = json.dumps(body) if body is not None else ""
        head = f"{method} /api/v1/{path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Token {self.token}\r\n"
        return f"{head}Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n{content}".encode()

    def hang_up(self) -> None:
        for _, connection in self.lines.values():
            connection.transport.close()


def unloved(lease: Json) -> bool:
    question: str = lease["task"]["conversation"][0]["content"].partition(":")[0]
    return int(question.removeprefix("Question ")) <= UNLOVED
