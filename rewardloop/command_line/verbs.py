"""The verbs of `rewardloop` on projects, files, runs, models, scores and releases."""

import json
import sys
from argparse import ArgumentTypeError, Namespace
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from typing import Any

from rewardloop.answers import ImportResult, Model, Project, Release, Run, Task
from rewardloop.client import Client
from rewardloop.command_line.terminal import BadInput, Terminal, one_line
from rewardloop.imports import HUB
from rewardloop.progress import Progress
from rewardloop.scoring import batches

SOME_REFUSED = 3
MOST_SHOWN = 20


def setting(text: str) -> tuple[str, Any]:
    """Returns the name and the value of NAME=VALUE; a value is JSON where it can be, else a text."""
    name, equals, value = text.partition("=")
    if not (name.isidentifier() and equals):
        raise ArgumentTypeError(f"write it as NAME=VALUE, not as {text!r}")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


# Projects ----------------------------------------------------------------------------------------------------
def list_projects(client: Client, options: Namespace, terminal: Terminal) -> None:
    def cells(project: Project) -> list[object]:
        progress = project.progress
        counts = [progress.complete, progress.tasks] if progress else ["", ""]
        return [project.slug, project.name, project.own.role if project.own else "", *counts]

    found = client.projects(archived=options.archived)
    terminal.rows(("project", "name", "role", "complete", "tasks"), ((project, cells(project)) for project in found))


def show_project(client: Client, options: Namespace, terminal: Terminal) -> None:
    project = client.project(options.project)
    terminal.data(project)
    for name, value in project.raw.items():
        terminal.say(f"{one_line(name)}: {one_line(value, 500)}")


def create_project(client: Client, options: Namespace, terminal: Terminal) -> None:
    project = client.create_project(options.project, options.name, **dict(options.set))
    terminal.data(project)
    terminal.say(f"The project {project.slug} is there. Import tasks: rewardloop import {project.slug} FILE")


def list_tasks(client: Client, options: Namespace, terminal: Terminal) -> None:
    def cells(task: Task) -> list[object]:
        return [task.id, task.state, len(task.responses), task.conversation[-1].content if task.conversation else ""]

    found = islice(client.tasks(options.project, state=options.state, q=options.search), options.limit or None)
    terminal.rows(("task", "state", "responses", "last message"), ((task, cells(task)) for task in found))


# Files -------------------------------------------------------------------------------------------------------
def import_files(client: Client, options: Namespace, terminal: Terminal) -> int:
    """Imports each file; `--mapping` is a file that holds one, or the name of one that the project keeps."""
    mapping: str | dict[str, Any] = options.mapping
    if Path(options.mapping).is_file():
        try:
            mapping = json.loads(Path(options.mapping).read_bytes())
        except ValueError as broken:
            raise BadInput(f"{options.mapping} holds no JSON: {broken}") from broken
    refused = 0
    for file in options.files:
        with terminal.bar() as on_progress:
            done = client.import_tasks(
                options.project,
                sys.stdin.buffer if file == "-" else file,
                mapping=mapping,
                dry_run=options.dry_run,
                on_progress=on_progress,
            )
        for part in done.files or (done,):
            _show_import(part.name if file.startswith(HUB) else file, part, terminal=terminal)
        refused += done.rejected
    return SOME_REFUSED if refused else 0


def _show_import(file: str, done: ImportResult, *, terminal: Terminal) -> None:
    terminal.data({"file": file, **done.raw, "refused": [row.raw for row in done.refused]})
    would = "would be " if done.dry_run else ""
    terminal.say(f"{file}: {done.created:,} {would}new, {done.existing:,} known, {done.rejected:,} refused")
    if done.ratings_added or done.ratings_left_out:
        terminal.say(f"  {done.ratings_added:,} ratings {would}added, {done.ratings_left_out:,} left out")
    for row in done.refused[:MOST_SHOWN]:
        where = f"line {row.line}" + (f", {row.field}" if row.field else "")
        terminal.say(f"  {where}: {row.error}")
    if (more := done.rejected + done.ratings_left_out - MOST_SHOWN) > 0:
        terminal.say(f"  ... and {more:,} more; --json lists up to 1,000")
    for note in done.notes:
        terminal.say(f"  {note.text} ({note.rows:,} of the tasks, from line {note.line:,} on)")


def export(client: Client, options: Namespace, terminal: Terminal) -> None:
    with terminal.bar() as on_progress:
        file = client.export(
            options.project,
            options.output,
            layout=options.layout,
            format=options.format,
            gzip=options.gzip,
            on_progress=on_progress,
            **dict(options.filter),
        )
    _show_file(file, "", terminal=terminal)


def _show_file(file: Path, checked: str, *, terminal: Terminal) -> None:
    size = file.stat().st_size
    terminal.data({"file": str(file), "bytes": size})
    terminal.say(f"{file}: {size:,} bytes{checked}")


# Runs, models, scores ----------------------------------------------------------------------------------------
def list_runs(client: Client, options: Namespace, terminal: Terminal) -> None:
    found = client.runs(options.project)
    cells = ((run, [run.id, run.state, run.reward_model, run.created_at, run.reason]) for run in found)
    terminal.rows(("run", "state", "model", "begun", "reason"), cells)


def start_run(client: Client, options: Namespace, terminal: Terminal) -> int:
    run = client.start_run(options.project, reason=options.reason, **dict(options.set))
    if options.wait:
        return _follow(client, run.id, terminal=terminal)
    terminal.data(run)
    terminal.say(f"Run {run.id} is {run.state}. Wait for it: rewardloop runs wait {run.id}")
    return 0


def wait_for_run(client: Client, options: Namespace, terminal: Terminal) -> int:
    return _follow(client, options.run, terminal=terminal)


def cancel_run(client: Client, options: Namespace, terminal: Terminal) -> None:
    run = client.cancel_run(options.run)
    terminal.data(run)
    terminal.say(f"Run {run.id} is {run.state}.")


def _follow(client: Client, number: int, *, terminal: Terminal) -> int:
    """Says each state as it comes, and returns the exit code for the last one."""
    seen: list[str] = []

    def say_state(run: Run) -> None:
        if run.state not in seen[-1:]:
            seen.append(run.state)
            terminal.say(f"Run {run.id} is {run.state}.")

    run = client.wait_for_run(number, on_progress=say_state)
    terminal.data(run)
    terminal.say(run.error or (f"Its model is {run.reward_model}." if run.reward_model else ""))
    if run.state == "awaiting_promotion":
        terminal.say(f"A manager decides: rewardloop models promote {run.reward_model}")
    return 1 if run.state in {"failed", "cancelled"} else 0


def list_models(client: Client, options: Namespace, terminal: Terminal) -> None:
    def cells(model: Model) -> list[object]:
        champion = "yes" if model.is_champion else ""
        return [model.id, model.project, model.version, champion, model.created_at, ", ".join(model.attributes)]

    columns = ("model", "project", "version", "champion", "made", "attributes")
    terminal.rows(columns, ((model, cells(model)) for model in client.models(options.project)))


def promote(client: Client, options: Namespace, terminal: Terminal) -> None:
    model = client.promote(options.model, confirm=options.confirm)
    terminal.data(model)
    terminal.say(f"Model {model.id} (version {model.version} of {model.project}) is the champion.")


def download_model(client: Client, options: Namespace, terminal: Terminal) -> None:
    with terminal.bar() as on_progress:
        file = client.download_model(options.model, options.output, part=options.part, on_progress=on_progress)
    _show_file(file, ", all files as the server lists them", terminal=terminal)


def score(client: Client, options: Namespace, terminal: Terminal) -> None:
    """Writes a line for each item as its batch is done, so that a file of any size goes through."""
    model = options.model
    for batch in batches(_items(options.file)):
        done = client.score(batch, project=options.project, model=model)
        model = done.model
        for one in done.results or ():
            terminal.data({"model": model, **one.raw})
            scores = ", ".join(f"{name} {value:.2f}" for name, value in one.scores.items())
            terminal.say(f"{one.reward:.4f}  ({scores})")


def _items(name: str) -> Iterator[dict[str, Any]]:
    with nullcontext(sys.stdin.buffer) if name == "-" else Path(name).open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                item = json.loads(line)
            except ValueError as broken:
                raise BadInput(f"Line {number} is no JSON: {broken}") from broken
            if not isinstance(item, dict) or not {"conversation", "response"} <= item.keys():
                raise BadInput(f'Line {number} is no item: write {{"conversation": [...], "response": "..."}}')
            yield {"conversation": item["conversation"], "response": item["response"]}


# Releases ----------------------------------------------------------------------------------------------------
def list_releases(client: Client, options: Namespace, terminal: Terminal) -> None:
    found = client.releases(options.project)
    cells = ((one, [one.number, one.state, one.license, one.created_at, one.title]) for one in found)
    terminal.rows(("release", "state", "licence", "made", "title"), cells)


def create_release(client: Client, options: Namespace, terminal: Terminal) -> None:
    names = ("title", "license", "license_text", "intended_use", "limits", "notes", "leave_out_failing")
    particulars = {name: value for name in names if (value := getattr(options, name))}
    options.number = (release := client.create_release(options.project, **particulars)).number
    if options.wait:
        wait_for_release(client, options, terminal)
    else:
        _show_release(options.project, release, terminal=terminal)


def wait_for_release(client: Client, options: Namespace, terminal: Terminal) -> None:
    with terminal.bar() as on_progress:
        release = client.wait_for_release(
            options.project,
            options.number,
            on_progress=on_progress
            and (lambda now: on_progress(Progress("writing", now.rows_done, now.rows_expected or 0))),
        )
    _show_release(options.project, release, terminal=terminal)


def _show_release(project: str, release: Release, *, terminal: Terminal) -> None:
    terminal.data(release)
    verb = "download" if release.state == "done" else "wait"
    terminal.say(f"Release {release.number} is {release.state}: rewardloop release {verb} {project} {release.number}")


def download_release(client: Client, options: Namespace, terminal: Terminal) -> None:
    with terminal.bar() as on_progress:
        file = client.download_release(options.project, options.number, to=options.output, on_progress=on_progress)
    _show_file(file, ", its SHA-256 is the server's", terminal=terminal)
