"""Writes the progress of a run as one JSON object a line, to a file and to stdout."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any


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
