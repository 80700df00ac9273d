"""Writes the progress of a run as one JSON object a line, to a file and to stdout."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SECONDS_BETWEEN = 1.0
"""Work that is counted says how far it is no more often than this."""


class Progress:
    """Appends events to `path`; each has its name and the time in seconds since 1970.

    Of several processes one writes, and the others are `silent`.
    """

    def __init__(self, path: Path, *, silent: bool = False) -> None:
        self.path = path
        self.silent = silent

    def tell(self, event: str, **values: Any) -> None:
        """Writes one event with its values, which must be JSON."""
        if self.silent:
            return
        line = json.dumps({"event": event, "time": round(time.time(), 3), **values})
        with self.path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
        sys.stdout.write(line + "\n")
        # A pipe is buffered by the block: without this the supervisor would see steps minutes late.
        sys.stdout.flush()


@dataclass
class Count:
    """Counts what is done of a long piece of work, and writes an event for each per cent more of it.

    Without a progress nothing is written.
    """

    event: str
    total: int
    progress: Progress | None
    done: int = 0
    written_at: float = field(default_factory=time.monotonic)

    def add(self, items: int = 1) -> None:
        """Counts items that are done."""
        before, self.done = self.done, self.done + items
        now = time.monotonic()
        a_per_cent_more = self.total and 100 * before // self.total < 100 * self.done // self.total
        if self.progress and a_per_cent_more and now - self.written_at >= SECONDS_BETWEEN:
            self.written_at = now
            self.progress.tell(self.event, done=min(self.done, self.total), total=self.total)
