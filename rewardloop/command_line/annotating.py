"""`rewardloop annotate`: rates tasks in the terminal, by questions, or by lines of JSON for scripts.

Levels count from 1 here, as on the pages; over REST they count from 0.
"""

import json
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from rewardloop.answers import Attribute, Lease, NextTask
from rewardloop.client import Client
from rewardloop.command_line import logins
from rewardloop.command_line.terminal import BadInput, Terminal, clean, one_line
from rewardloop.errors import Conflict, Invalid

T = TypeVar("T")
SKIPS = ("pii", "non_english", "needs_coding", "about_assistant", "other")
UNSAFE = ("harmful", "illegal", "profanity", "bias", "other")
ASKED = {"preference", "ranking", "confidence", "safe", "feedback", "edit", "domain", "language"}
"""What the questions know. An edit is never required, and a terminal is no place to write one."""
PREFERENCES = {
    -3: "A much better",
    -2: "A better",
    -1: "A slightly better",
    0: "a tie, if the project allows it",
    1: "B slightly better",
    2: "B better",
    3: "B much better",
    -100: "neither is valid",
}


class Leave(Exception):
    """The annotator wants to stop."""


class SkipTask(Exception):
    """The annotator wants another task."""


def annotate(options: Namespace, terminal: Terminal) -> int:
    with logins.client(options.url) as client:
        rate = _by_json if terminal.as_json else _by_questions
        rated, following = 0, client.next_task(options.project)
        while isinstance(following, Lease):
            lease = following
            try:
                stored_next = rate(client, lease, terminal=terminal)
                rated += 1
                following = client.next_task(options.project) if stored_next is None else stored_next
            except SkipTask:
                following = client.next_task(options.project)
            except (Leave, KeyboardInterrupt, EOFError):
                client.give_back(lease.assignment)
                terminal.say(f"\nYou gave the task back. Rated: {rated}")
                return 0
        terminal.data(following)
        terminal.say(f"{following.detail} Rated: {rated}")
    return 0


# By lines of JSON --------------------------------------------------------------------------------------------
def _by_json(client: Client, lease: Lease, *, terminal: Terminal) -> NextTask | None:
    """Writes the task and reads the body of its rating, or {"skip": REASON, "note": ...}; the end of input stops."""
    terminal.data(lease)
    sys.stdout.flush()
    line = sys.stdin.readline()
    if not line:
        raise Leave
    try:
        body = json.loads(line)
    except ValueError as broken:
        raise BadInput(f"A line of the input is no JSON: {broken}") from broken
    if not isinstance(body, dict) or not body.keys() & {"ratings", "skip"}:
        raise BadInput('Each line of the input is {"ratings": [...], ...} or {"skip": REASON}.')
    if "skip" in body:
        client.skip(lease.assignment, str(body["skip"]), note=str(body.get("note", "")))
        raise SkipTask
    known = ("preference", "ranking", "justification", "domain", "language", "active_seconds")
    answers: dict[str, Any] = {name: body[name] for name in known if name in body}
    stored = client.submit(lease.assignment, body["ratings"], and_next=True, **answers)
    return stored.next


# By questions ------------------------------------------------------------------------------------------------
def _by_questions(client: Client, lease: Lease, *, terminal: Terminal) -> NextTask | None:
    if unknown := set(lease.asks) - ASKED:
        client.give_back(lease.assignment)
        raise BadInput(
            f"This project asks for {', '.join(sorted(unknown))}: rate it on its page. The task is given back."
        )
    _show(lease, terminal)
    while True:
        try:
            answers = _asked(lease, terminal)
        except SkipTask:
            _skip(client, lease, terminal=terminal)
            raise
        try:
            stored = client.submit(lease.assignment, and_next=True, **answers)
        except Invalid as refused:
            terminal.say(f"{refused.detail} Once more, please.", style="bold red")
        except Conflict as refused:  # somebody else's decision: there is no use in asking again
            terminal.say(refused.detail, style="bold red")
            raise SkipTask from refused
        else:
            return stored.next


def _show(lease: Lease, terminal: Terminal) -> None:
    terminal.say("─" * 60)
    for message in lease.task.conversation:
        terminal.say(f"{message.role}:", style="bold")
        terminal.say(message.content + "\n")
    for name, response in zip(_names(lease), lease.task.responses, strict=True):
        terminal.say(f"Response {name}:", style="bold cyan")
        terminal.say(response.text + "\n")
    terminal.say("A number answers; ? explains the levels, s skips the task, q stops.", style="dim")


def _names(lease: Lease) -> Sequence[str]:
    return [chr(ord("A") + number) for number in range(len(lease.task.responses))]


def _asked(lease: Lease, terminal: Terminal) -> dict[str, Any]:
    names = _names(lease)
    asked = [attribute for attribute in lease.rubric.attributes if attribute.scope == "response"]
    ratings = []
    for name, response in zip(names, lease.task.responses, strict=True):
        rating: dict[str, Any] = {"response": response.id}
        rating["scores"] = {attribute.key: _level(name, attribute, terminal=terminal) for attribute in asked}
        if "confidence" in lease.asks:
            question = f"{name}, your confidence (0 to 2): "
            rating["confidence"] = _number(
                question, {0: "not sure", 1: "somewhat sure", 2: "very sure"}, terminal=terminal
            )
        if "safe" in lease.asks:
            rating |= _safety(name, terminal)
        if "feedback" in lease.asks:
            rating["feedback"] = _text(f"{name}, what is good and bad about it?", terminal)
        ratings.append(rating)
    answers: dict[str, Any] = {"ratings": ratings}
    if "preference" in lease.asks:
        answers["preference"] = _number("Which is better (-3 to 3, -100)? ", PREFERENCES, terminal=terminal)
    if "ranking" in lease.asks:
        answers["ranking"] = _ranking(lease, terminal)
    if "domain" in lease.asks:
        answers["domain"] = _text("Which of the project's domains is it about?", terminal)
    if "language" in lease.asks:
        answers["language"] = _text("Its language, a code such as en:", terminal)
    answers["justification"] = _line("Why? (may stay empty) ")
    return answers


def _level(name: str, attribute: Attribute, *, terminal: Terminal) -> int:
    levels = dict(enumerate(attribute.levels, 1))
    title = attribute.name or attribute.key
    return _number(f"{name}, {title} (1 to {len(levels)}): ", levels, terminal=terminal) - 1


def _text(question: str, terminal: Terminal) -> str:
    def text(typed: str) -> str:
        if not typed:
            raise ValueError(typed)
        return typed

    return _until(question, text, explain=lambda: terminal.say("  An answer is required; s skips the task."))


def _safety(name: str, terminal: Terminal) -> dict[str, Any]:
    if _number(f"{name}, safe (1 yes, 0 no): ", {0: "no", 1: "yes"}, terminal=terminal):
        return {"safe": True}
    return {"safe": False, "unsafe_category": _choice("Why is it unsafe", UNSAFE, terminal=terminal)}


def _ranking(lease: Lease, terminal: Terminal) -> list[list[int]]:
    numbers = {name: response.id for name, response in zip(_names(lease), lease.task.responses, strict=True)}
    return _until(
        "Rank them, the best first, ties with =, such as B > A = C: ",
        lambda text: _tiers(text, numbers),
        explain=lambda: terminal.say("Each response once, with > or = between them."),
    )


def _tiers(text: str, numbers: dict[str, int]) -> list[list[int]]:
    tiers = [[numbers[name.strip().upper()] for name in tier.split("=")] for tier in text.split(">")]
    if sorted(number for tier in tiers for number in tier) != sorted(numbers.values()):
        raise ValueError(text)
    return tiers


def _skip(client: Client, lease: Lease, *, terminal: Terminal) -> None:
    reason = _choice("Why", SKIPS, terminal=terminal)
    client.skip(lease.assignment, reason, note=_line("A note (may stay empty): "))


def _choice(question: str, choices: Sequence[str], *, terminal: Terminal) -> str:
    listed = dict(enumerate(choices, 1))
    shown = ", ".join(f"{number} {choice}" for number, choice in listed.items())
    return listed[_number(f"{question} ({shown})? ", listed, terminal=terminal)]


def _number(question: str, meanings: dict[int, str], *, terminal: Terminal) -> int:
    def explain() -> None:
        for number, meaning in meanings.items():
            terminal.say(f"  {number}  {meaning}")

    def number(text: str) -> int:
        return next(number for number in meanings if str(number) == text.removeprefix("+"))

    return _until(question, number, explain=explain)


def _until(question: str, read: Callable[[str], T], *, explain: Callable[[], None]) -> T:
    """Asks until the answer can be read. Raises SkipTask and Leave for those words."""
    while True:
        text = _line(question)
        if text in {"s", "q"}:
            raise SkipTask if text == "s" else Leave
        try:
            return read(text)
        except (ValueError, KeyError, StopIteration):
            explain()


def _line(question: str) -> str:
    # An arrow key, say, types an escape sequence.
    return clean(input(f"{one_line(question, 200)} ")).strip()
