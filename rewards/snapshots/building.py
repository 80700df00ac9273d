"""Builds a snapshot: reads the labels in force, writes them to files in a folder of its own, and puts it into place.

One process at a time builds for a project, by a lock that PostgreSQL releases when the process dies. So whoever holds
it knows that every unfinished folder of the project was left by a process that was killed. The two files are written
line by line, with their hashes and counts: they are never read again.
"""

import hashlib
import json
import os
import re
import shutil
import tempfile
import time
from array import array
from collections import Counter
from collections.abc import Generator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from django.conf import settings
from django.db import connection, transaction
from django.utils.translation import gettext as _

from annotator.infrastructure import audit
from annotator.infrastructure.db import locks
from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.refusals import Refusal
from annotator.infrastructure.storage import artifacts, disk_space, store, working_copies
from annotator.models import Label, Project, Task
from annotator.models.in_force import AGREED, IMPORTED, compared_alone
from annotator.models.splits import is_held_out
from annotator.stages.consensus import Rules
from annotator.stages.importing.bulk_copy import copy_rows
from rewards.learning.data import USUAL_LEVELS
from rewards.models import Snapshot, SnapshotTask
from rewards.snapshots import lines
from rewards.snapshots.lines import SnapshotLine


def has_answers(project: Project) -> bool:
    """Returns whether there is anything to learn from: a label in force, or a preference."""
    if Label.objects.for_project(project.pk).are_in_force():
        return True
    preferred = compared_alone(project.tasks.all())
    # Two reads, as each has an index: one for both would look at every task of a project without answers.
    agreed = preferred.filter(AGREED, consensus__project=project)
    return preferred.filter(IMPORTED).union(agreed).exists()


def require_answers(project: Project) -> None:
    """Raises Refusal where there is nothing to learn from; it reads one label at most."""
    if not has_answers(project):
        text = _("There are no labels and no preferences in %(project)s yet. Rate tasks, or import some.")
        raise Refusal(text % {"project": project.name}, code="not_enough_labels")


PROMPT_BYTES = 16
"""Half of a prompt's hash is kept to count the prompts: no two of them have it in common by chance."""


class Side:
    """One side of the split: its file, the file's SHA-256 and the counts."""

    def __init__(self, path: Path) -> None:
        self.file = path.open("wb", buffering=1 << 20)
        self.hash = hashlib.sha256()
        self.counts = dict.fromkeys(("tasks", "responses", "labels", "preferences"), 0)
        self._prompts = bytearray()

    def add(self, line: SnapshotLine) -> None:
        text = line.text.encode()
        self.file.write(text)
        self.hash.update(text)
        self.counts["tasks"] += 1
        self.counts["responses"] += line.responses
        self.counts["labels"] += line.labels
        self.counts["preferences"] += line.preferences
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

    def add(self, line: SnapshotLine) -> None:
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
        counts = {f"{name}_{what}": n for name, side in self.sides.items() for what, n in side.counts.items()}
        return counts | {f"{name}_prompts": side.prompts() for name, side in self.sides.items()}


FORMAT = 1
LOCK = 83121
"""The advisory lock that redacting or deleting tasks takes shared, in a trigger, and storing a snapshot exclusively.

The trigger is in rewards/models/triggers/.
"""
BUILDING = "building a snapshot"
"""The subject of the lock that whoever builds for a project holds."""
PAUSE_SECONDS = 1.0
_UNFINISHED = re.compile(r"\.building-(\d+)-")


@dataclass(frozen=True)
class Step:
    """How many tasks are in the files so far; after the last step, the snapshot."""

    tasks: int
    snapshot: Snapshot | None = None


def take(project: Project, *, now: datetime) -> Snapshot:
    """Writes the labels in force to files; unchanged labels give the snapshot that exists already.

    Raises: what `steps` raises.
    """
    *_, last = steps(project, now=now)
    assert last.snapshot is not None
    return last.snapshot


def steps(project: Project, *, now: datetime) -> Generator[Step, None, None]:
    """Builds a snapshot step by step, so that the caller can say that it is alive, or close the iterator to give up.

    While another process builds for the project, steps only pass the time.

    Raises:
        Refusal: one side of the split is empty.
        DiskNearlyFull, ForeignArtifacts: there is no room for the files, or the folder is not this installation's.
    """
    artifacts.require_ours()
    is_ours = False
    while not is_ours:
        with locks.session_lock(BUILDING, project.pk) as is_ours:
            if is_ours:
                yield from _steps(project, now)
        if not is_ours:
            yield Step(0)
            time.sleep(PAUSE_SECONDS)


def _steps(project: Project, now: datetime) -> Generator[Step, None, None]:
    disk_space.require_room()
    folder = settings.ARTIFACTS / "snapshots"
    folder.mkdir(parents=True, exist_ok=True)
    _remove_unfinished(folder, project.pk)
    # In the same folder as its final place, so that it can be renamed: within a file system that is one step.
    building = Path(tempfile.mkdtemp(prefix=f".building-{project.pk}-", dir=folder))
    try:
        with disk_space.full_disk_named(), Files(building, project.validation_share) as files:
            for part in lines.parts(project):
                # Closed before the lock is released, which takes the same connection.
                with closing(part):
                    for line in part:
                        files.add(line)
                yield Step(len(files.tasks))
                disk_space.require_room()
            files.finish()
            counts = files.counts()
            _check(project, counts)
            manifest = _manifest(project, files, counts, now)
            before = Snapshot.objects.filter(project=project, content_hash=manifest["content_hash"]).first()
            # By number, as another project may get the slug. The dot keeps it apart from folders that older versions
            # named so.
            path = Path(before.path if before else f"snapshots/project.{project.pk}/{manifest['content_hash']}")
            final = settings.ARTIFACTS / path
            (building / "manifest.json").write_text(json.dumps(manifest, indent=2))
            final.parent.mkdir(parents=True, exist_ok=True)
            store.put(final, source=building)
            try:
                building.rename(final)
            except OSError:
                # The same content is there, written before.
                if not (final / "manifest.json").is_file():
                    raise
            yield Step(len(files.tasks), _stored(project, path, manifest, files))
    finally:
        shutil.rmtree(building, ignore_errors=True)


def remove_unfinished() -> list[Path]:
    """Removes the folders of builders that were killed; returns them. Those that are at work keep theirs."""
    folder, removed = settings.ARTIFACTS / "snapshots", []
    numbers = {match[1] for path in folder.glob(".building-*") if (match := _UNFINISHED.match(path.name))}
    for number in sorted(numbers):
        with locks.session_lock(BUILDING, int(number)) as is_ours:
            removed += _remove_unfinished(folder, int(number)) if is_ours else []
    return removed


working_copies.sweeps.append(remove_unfinished)


def _remove_unfinished(folder: Path, project: int) -> list[Path]:
    """Removes what is left of snapshots of the project; only for whoever holds the lock."""
    left = list(folder.glob(f".building-{project}-*"))
    for path in left:
        shutil.rmtree(path, ignore_errors=True)
    return left


def _check(project: Project, counts: dict[str, int]) -> None:
    if not counts["train_tasks"] or not counts["validation_tasks"]:
        raise Refusal(
            f"{project.name} has {counts['train_tasks']} tasks with labels or preferences to learn from and "
            f"{counts['validation_tasks']} held out to judge by; both must be there. Label more tasks, or raise "
            f"validation_share (now {project.validation_share:g}).",
            code="not_enough_labels",
        )


def _manifest(project: Project, files: Files, counts: dict[str, int], now: datetime) -> dict[str, Any]:
    scales = {attribute.key: len(attribute.levels) for attribute in project.every_attribute()}
    levels = {key: levels for key, levels in scales.items() if levels != USUAL_LEVELS}
    aspects = [aspect.key for aspect in project.aspects_learnt()]
    identity = {"format": FORMAT, "attributes": project.attribute_keys(), "files": files.hashes()}
    # Only where there are some, so that what has five levels throughout keeps the hash that it always had.
    identity |= {"levels": levels} if levels else {}
    identity |= {"aspects": aspects} if aspects else {}
    return identity | {
        "project": project.slug,
        "content_hash": hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest(),
        "counts": counts,
        "split": {"by": "prompt_hash", "validation_share": project.validation_share},
        "rubric": {
            "key": project.rubric.key,
            "version": project.rubric.version,
            "labels_by_version": {str(version): number for version, number in sorted(files.versions.items())},
        },
        "protocol": vars(Rules.of(project)),
        "taken_at": now.isoformat(),
    }


@transaction.atomic
def _stored(project: Project, path: Path, manifest: dict[str, Any], files: Files) -> Snapshot:
    """Stores the snapshot's row and its tasks, and counts those that were redacted or deleted while it was written."""
    existing = Snapshot.objects.filter(project=project, content_hash=manifest["content_hash"]).first()
    if existing:
        # Its files have just been written again, so it is no longer erased.
        Snapshot.objects.filter(pk=existing.pk).update(erasing_at=None, erased_at=None)
        return existing
    counts = manifest["counts"]
    snapshot = Snapshot.objects.create(
        project=project,
        content_hash=manifest["content_hash"],
        path=str(path),
        manifest=manifest,
        train_tasks=counts["train_tasks"],
        validation_tasks=counts["validation_tasks"],
        labels=counts["train_labels"] + counts["validation_labels"],
    )
    copy_rows(SnapshotTask, ("task_id", "snapshot_id"), ((task, snapshot.pk) for task in files.tasks))
    with connection.cursor() as cursor:
        # While this lock is held no task of the project is redacted or deleted: else one that goes between the count
        # below and the commit would be in the files and never be marked. Those who do wait, so it comes last.
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [LOCK, project.pk])
    if any(changed := _changed_meanwhile(snapshot, files)):
        redacted, deleted = changed
        Snapshot.objects.filter(pk=snapshot.pk).update(
            redacted_tasks=redacted, deleted_tasks=deleted, marked_at=database_now()
        )
        snapshot.refresh_from_db()
    audit.record("snapshot.taken", f"snapshot {snapshot.content_hash[:12]}", project=project, **counts)
    return snapshot


def _changed_meanwhile(snapshot: Snapshot, files: Files) -> tuple[int, int]:
    """Returns how many of the tasks in the files have been redacted since they were read, and how many deleted."""
    present = Task.objects.filter(pk__in=SnapshotTask.objects.filter(snapshot=snapshot).values("task_id"))
    now_redacted = dict(present.filter(redacted_at__isnull=False).values_list("pk", "redacted_at"))
    restored = present.filter(pk__in=[*(files.redacted.keys() - now_redacted.keys())], redacted_at=None)
    redacted = sum(files.redacted.get(task) != redacted_at for task, redacted_at in now_redacted.items())
    return redacted + restored.count(), len(files.tasks) - present.count()
