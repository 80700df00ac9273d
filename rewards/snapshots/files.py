"""Writes a snapshot's two files, line by line, and keeps their hashes and counts: they are never read again."""

import hashlib
import os
from array import array
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import TracebackType

import numpy as np

from annotator.models.splits import is_held_out
from rewards.snapshots.lines import Line

PROMPT_BYTES = 16
"""Half of a prompt's hash is kept to count the prompts: no two of them have it in common by chance."""


class Side:
    """One side of the split: its file, the file's SHA-256 and the counts."""

    def __init__(self, path: Path) -> None:
        self.file = path.open("wb", buffering=1 << 20)
        self.hash = hashlib.sha256()
        self.tasks = self.responses = self.labels = self.preferences = 0
        self._prompts = bytearray()

    def add(self, line: Line) -> None:
        text = line.text.encode()
        self.file.write(text)
        self.hash.update(text)
        self.tasks += 1
        self.responses += line.responses
        self.labels += line.labels
        self.preferences += line.preferences
        self._prompts += int(line.prompt_hash[: 2 * PROMPT_BYTES], 16).to_bytes(PROMPT_BYTES, "big")

    def prompts(self) -> int:
        """Returns the number of different prompts."""
        return len(np.unique(np.frombuffer(self._prompts, dtype=f"S{PROMPT_BYTES}")))

    def finish(self) -> None:
        """Sees to it that the file is on the disk."""
        self.file.flush()
        os.fsync(self.file.fileno())


@dataclass
class Files:
    """The files while they are written, and the tasks in them; a million of these take eight megabytes."""

    folder: Path
    validation_share: float
    tasks: "array[int]" = field(default_factory=lambda: array("q"))
    redacted: dict[int, datetime] = field(default_factory=dict)
    versions: Counter[int] = field(default_factory=Counter)
    """Labels by the version of the rubric that they were made under."""

    def __enter__(self) -> "Files":
        self.sides = {name: Side(self.folder / f"{name}.jsonl") for name in ("train", "validation")}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # All are closed, even if one of them finds the disk full.
        with ExitStack() as stack:
            for side in self.sides.values():
                stack.callback(side.file.close)

    def add(self, line: Line) -> None:
        self.sides["validation" if is_held_out(line.prompt_hash, self.validation_share) else "train"].add(line)
        self.tasks.append(line.task)
        self.versions.update(line.versions)
        if line.redacted_at:
            self.redacted[line.task] = line.redacted_at

    def finish(self) -> None:
        for side in self.sides.values():
            side.finish()

    def hashes(self) -> dict[str, str]:
        """Returns the SHA-256 of each file by its name."""
        return {f"{name}.jsonl": side.hash.hexdigest() for name, side in self.sides.items()}

    def counts(self) -> dict[str, int]:
        """Returns the manifest's counts."""
        whats = ("tasks", "responses", "labels", "preferences")
        counts = {f"{name}_{what}": getattr(side, what) for name, side in self.sides.items() for what in whats}
        return counts | {f"{name}_prompts": side.prompts() for name, side in self.sides.items()}
