"""`rewardloop import` and `export`."""

import json
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

from rewardloop.answers import ImportResult
from rewardloop.command_line import logins
from rewardloop.command_line.terminal import BadInput, Terminal
from rewardloop.uploads import HUB

SOME_REFUSED = 3
MOST_SHOWN = 20


def import_files(options: Namespace, terminal: Terminal) -> int:
    mapping = _mapping(options.mapping)
    refused = 0
    with logins.client(options.url) as client:
        for file in options.files:
            with terminal.bar() as told:
                source = sys.stdin.buffer if file == "-" else file
                done = client.import_tasks(options.project, source, mapping=mapping, dry_run=options.dry_run, told=told)
            for part in done.files or (done,):
                _show(part.name if file.startswith(HUB) else file, part, terminal=terminal)
            refused += done.rejected
    return SOME_REFUSED if refused else 0


def _mapping(named: str) -> str | dict[str, Any]:
    """Returns what a file holds, or the name of a mapping that the project keeps."""
    if not Path(named).is_file():
        return named
    try:
        mapping: dict[str, Any] = json.loads(Path(named).read_bytes())
    except ValueError as broken:
        raise BadInput(f"{named} holds no JSON: {broken}") from broken
    return mapping


def _show(file: str, done: ImportResult, *, terminal: Terminal) -> None:
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


def export(options: Namespace, terminal: Terminal) -> int:
    with logins.client(options.url) as client, terminal.bar() as told:
        file = client.export(
            options.project,
            options.output,
            layout=options.layout,
            format=options.format,
            gzip=options.gzip,
            told=told,
            **dict(options.filter),
        )
    terminal.data({"file": str(file), "bytes": file.stat().st_size})
    terminal.say(f"{file}: {file.stat().st_size:,} bytes")
    return 0
