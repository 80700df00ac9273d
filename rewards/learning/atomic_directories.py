"""Writes directories and files that appear whole or not at all.

They are written beside their place, synced to the disk and then renamed. A process that is killed on the way leaves
only a name that begins with a dot, which the next attempt removes.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def whole_directory(place: Path) -> Iterator[Path]:
    """Yields a new directory to fill, which takes the name `place` at the end and replaces what stood there before."""
    unfinished = place.with_name(f".{place.name}.unfinished")
    # Left behind by a process that was killed; its files must not mix with ours.
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    yield unfinished
    # The content reaches the disk before the name: after a power cut a renamed directory could else hold empty files.
    for path in unfinished.rglob("*"):
        sync(path)
    sync(unfinished)
    # A directory that is not empty cannot be renamed over, so the former one steps aside first.
    former = place.with_name(f".{place.name}.former")
    shutil.rmtree(former, ignore_errors=True)
    if place.exists():
        place.rename(former)
    unfinished.rename(place)
    # The rename is an entry of the parent directory, which is synced by itself.
    sync(place.parent)
    shutil.rmtree(former, ignore_errors=True)


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Writes a JSON file that appears whole or not at all."""
    unfinished = path.with_name(f".{path.name}.unfinished")
    unfinished.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")
    sync(unfinished)
    unfinished.rename(path)
    sync(path.parent)


def sync(path: Path) -> None:
    """Waits until a file's content, or a directory's entries, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
