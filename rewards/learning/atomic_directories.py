"""Directories that appear whole or not at all: written beside their place, synced to the disk, renamed."""

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
    """A new directory to fill, which takes the name `place` at the end; what stood there before is replaced."""
    unfinished = place.with_name(f".{place.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    yield unfinished
    for path in unfinished.rglob("*"):
        sync(path)
    sync(unfinished)
    former = place.with_name(f".{place.name}.former")
    shutil.rmtree(former, ignore_errors=True)
    if place.exists():
        place.rename(former)
    unfinished.rename(place)
    sync(place.parent)
    shutil.rmtree(former, ignore_errors=True)


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """The same promise for a single file: whoever finds it finds all of it."""
    unfinished = path.with_name(f".{path.name}.unfinished")
    unfinished.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")
    sync(unfinished)
    unfinished.rename(path)
    sync(path.parent)


def sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
