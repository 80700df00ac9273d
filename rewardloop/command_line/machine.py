"""`rewardloop runs`, `models` and `score`."""

import json
import sys
from argparse import ArgumentTypeError, Namespace
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from rewardloop.answers import Run
from rewardloop.client import Client
from rewardloop.command_line import logins
from rewardloop.command_line.terminal import BadInput, Terminal
from rewardloop.work import batches


def setting(text: str) -> tuple[str, Any]:
    """Returns the name and the value of NAME=VALUE; a value is JSON where it can be, else a text."""
    name, equals, value = text.partition("=")
    if not (name.isidentifier() and equals):
        raise ArgumentTypeError(f"write it as NAME=VALUE, not as {text!r}")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def list_runs(options: Namespace, terminal: Terminal) -> int:
    with logins.client(options.url) as client:
        columns = ("run", "state", "model", "begun", "reason")
        terminal.rows(
            columns,
            (
                (run, [run.id, run.state, run.reward_model, run.created_at, run.reason])
                for run in client.runs(options.project)
            ),
        )
    return 0


def start(options: Namespace, terminal: Terminal) -> int:
    with logins.client(options.url) as client:
        run = client.start_run(options.project, reason=options.reason, **dict(options.set))
        if not options.wait:
            terminal.data(run)
            terminal.say(f"Run {run.id} is {run.state}. Wait for it: rewardloop runs wait {run.id}")
            return 0
        return _follow(client, run.id, terminal=terminal)


def wait(options: Namespace, terminal: Terminal) -> int:
    with logins.client(options.url) as client:
        return _follow(client, options.run, terminal=terminal)


def cancel(options: Namespace, terminal: Terminal) -> int:
    with logins.client(options.url) as client:
        run = client.cancel_run(options.run)
    terminal.data(run)
    terminal.say(f"Run {run.id} is {run.state}.")
    return 0


def _follow(client: Client, number: int, *, terminal: Terminal) -> int:
    """Says each state as it comes, and returns the exit code for the last one."""
    seen: list[str] = []

    def told(run: Run) -> None:
        if run.state not in seen[-1:]:
            seen.append(run.state)
            terminal.say(f"Run {run.id} is {run.state}.")

    run = client.wait_for_run(number, told=told)
    terminal.data(run)
    terminal.say(run.error or (f"Its model is {run.reward_model}." if run.reward_model else ""))
    if run.state == "awaiting_promotion":
        terminal.say(f"A manager decides: rewardloop models promote {run.reward_model}")
    return 1 if run.state in {"failed", "cancelled"} else 0


def list_models(options: Namespace, terminal: Terminal) -> int:
    with logins.client(options.url) as client:
        columns = ("model", "project", "version", "champion", "made", "attributes")
        terminal.rows(
            columns,
            (
                (
                    model,
                    [
                        model.id,
                        model.project,
                        model.version,
                        "yes" if model.is_champion else "",
                        model.created_at,
                        ", ".join(model.attributes),
                    ],
                )
                for model in client.models(options.project)
            ),
        )
    return 0


def promote(options: Namespace, terminal: Terminal) -> int:
    with logins.client(options.url) as client:
        model = client.promote(options.model, confirm=options.confirm)
    terminal.data(model)
    terminal.say(f"Model {model.id} (version {model.version} of {model.project}) is the champion.")
    return 0


def download(options: Namespace, terminal: Terminal) -> int:
    with logins.client(options.url) as client, terminal.bar() as told:
        file = client.download_model(options.model, options.output, part=options.part, told=told)
    terminal.data({"file": str(file), "bytes": file.stat().st_size})
    terminal.say(f"{file}: {file.stat().st_size:,} bytes, all files as the server lists them")
    return 0


def score(options: Namespace, terminal: Terminal) -> int:
    """Writes a line for each item as its batch is done, so that a file of any size goes through."""
    model = options.model
    with logins.client(options.url) as client:
        for batch in batches(_items(options.file)):
            done = client.score(batch, project=options.project, model=model)
            model = done.model
            for one in done.results or ():
                terminal.data({"model": model, **one.raw})
                scores = ", ".join(f"{name} {value:.2f}" for name, value in one.scores.items())
                terminal.say(f"{one.reward:.4f}  ({scores})")
    return 0


def _items(name: str) -> Iterator[dict[str, Any]]:
    with nullcontext(sys.stdin.buffer) if name == "-" else Path(name).open("rb") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                yield _item(line, number)


def _item(line: bytes, number: int) -> dict[str, Any]:
    try:
        item = json.loads(line)
    except ValueError as broken:
        raise BadInput(f"Line {number} is no JSON: {broken}") from broken
    if not isinstance(item, dict) or not {"conversation", "response"} <= item.keys():
        raise BadInput(f'Line {number} is no item: write {{"conversation": [...], "response": "..."}}')
    return {"conversation": item["conversation"], "response": item["response"]}
