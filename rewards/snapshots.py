"""Writes labels to files: a frozen snapshot that a model learns from, with a hash of its content.

The split depends on the prompt's hash alone, so a prompt never changes side as the data grows.
"""

import hashlib
import json
import os
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from heapq import merge
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet, Subquery
from django.db.models.fields.json import KeyTextTransform

from annotator import audit
from annotator.consensus import Rules
from annotator.consensus.rankings import pairs_of
from annotator.db.clock import database_now
from annotator.models import Adjudication, Label, Project, Rating, Response, Task
from annotator.refusals import Refusal
from annotator.storage import artifacts, disk_space
from rewards.models import Snapshot, SnapshotTask

FORMAT = 1
LOCK = 83121
"""The advisory lock that redacting or deleting tasks takes shared, in a trigger, and storing a snapshot exclusively.

The trigger is in rewards/migrations/0002_lineage_and_marks.py.
"""
CHUNK = 500
Row = dict[str, Any]
AGREED = Q(task__consensus__preference__isnull=False) | (
    Q(task__consensus__isnull=False) & ~Q(task__consensus__pairs=[])
)
"""Selects responses of tasks where people agree on a preference, or on the order of any two responses."""


class NotEnoughLabels(Refusal):
    """There is nothing to learn from, or nothing to judge a model by."""

    code = "not_enough_labels"


def take(project: Project, *, now: datetime) -> Snapshot:
    """Writes the labels in force to files; unchanged labels give the snapshot that exists already.

    Raises:
        NotEnoughLabels: one side of the split is empty.
        DiskNearlyFull, ForeignArtifacts: there is no room for the files, or the folder is not this installation's.
    """
    artifacts.require_ours()
    disk_space.require_room()
    folder = settings.ARTIFACTS / "snapshots"
    folder.mkdir(parents=True, exist_ok=True)
    # In the same folder as its final place, so that it can be renamed: within a file system that is one step.
    building = Path(tempfile.mkdtemp(prefix=".building-", dir=folder))
    try:
        written = _write_rows(project, building)
        _check(project, written.counts)
        manifest = _manifest(project, building, written.counts, now)
        return _keep(project, building, manifest, written)
    finally:
        shutil.rmtree(building, ignore_errors=True)


def has_answers(project: Project) -> bool:
    """Returns whether there is anything to learn from: a label in force, or a preference."""
    return Label.objects.in_force().for_project(project.pk).exists() or preferred_alone(project).exists()


def is_held_out(prompt_hash: str, share: float) -> bool:
    """Returns whether a prompt is on the validation side: its hash, read as a fraction of 1, is below the share."""
    return int(prompt_hash[:16], 16) / 16**16 < share


@dataclass
class Written:
    """The content of the files: counts by side, the tasks with the time of their redaction, and the prompts by side."""

    counts: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    tasks: dict[int, datetime | None] = field(default_factory=dict)
    prompts: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))


def _write_rows(project: Project, folder: Path) -> Written:
    written = Written()
    with (folder / "train.jsonl").open("w") as train, (folder / "validation.jsonl").open("w") as validation:
        for task, redacted_at, row in _rows(project):
            held_out = is_held_out(row["prompt_hash"], project.validation_share)
            side = "validation" if held_out else "train"
            (validation if held_out else train).write(json.dumps(row, ensure_ascii=False) + "\n")
            written.counts[f"{side}_tasks"] += 1
            written.prompts[side].add(row["prompt_hash"])
            written.counts[f"{side}_responses"] += len(row["responses"])
            written.counts[f"{side}_labels"] += sum(bool(response["scores"]) for response in row["responses"])
            written.counts[f"{side}_preferences"] += (row["preference"] is not None) + len(row.get("pairs", ()))
            written.tasks[task] = redacted_at
        written.counts |= {f"{side}_prompts": len(prompts) for side, prompts in written.prompts.items()}
        for file in (train, validation):
            file.flush()
            os.fsync(file.fileno())
    return written


def _rows(project: Project) -> Iterator[tuple[int, datetime | None, Row]]:
    """Yields each task's id, the time of its redaction and its row, in the order of the ids, with its present texts."""
    both = merge(_labelled(project), _preferred(project), key=itemgetter(0))
    # A task that gets its labels while we read comes out of both queries: `merge` yields the labelled one first.
    once = (next(same) for _, same in groupby(both, key=itemgetter(0)))
    # The ratings of many tasks in one query: one query for each task would take most of the time.
    for batch in _batches(once):
        kept = [annotation for _, group in batch for annotation in group[0]["kept"] or []]
        ratings = _kept_ratings(kept)
        for task, group in batch:
            yield task, group[0]["task_redacted_at"], _row(group, ratings)


def _labelled(project: Project) -> Iterator[tuple[int, list[Row]]]:
    """Yields tasks with their labelled responses."""
    labels = (
        Label.objects.in_force()
        .for_project(project.pk)
        .order_by("response__task", "response__position")
        .values(
            "scores",
            "means",
            "source",
            response_pk=F("response"),
            text=F("response__text"),
            model=F("response__model"),
            **_of_task("response__task"),
        )
    )
    return _by_task(labels)


def _preferred(project: Project) -> Iterator[tuple[int, list[Row]]]:
    """Yields unlabelled tasks that have a preference between two responses, or a ranking of more."""
    responses = preferred_alone(project).order_by("task", "position")
    rows = responses.values("text", "model", response_pk=F("pk"), **_of_task("task"))
    for task, group in _by_task(rows):
        if (len(group) == 2 and _preference(group[0])) or _pairs(group):
            yield task, [row | {"scores": {}, "means": {}, "source": Label.Source.IMPORTED} for row in group]


def preferred_alone(project: Project) -> QuerySet[Response]:
    """Returns the responses of tasks with a preference or a ranking in force and no label; dropped tasks have none."""
    labels = Label.objects.in_force().filter(response__task=OuterRef("task"))
    agreed = Q(task__consensus__isnull=True) | Q(task__consensus__dropped_because="")
    asked = Q(task__imported_preference__range=(-3, 3)) | AGREED
    tasks = Response.objects.filter(task__project=project, task__state__in=[Task.State.OPEN, Task.State.COMPLETE])
    return tasks.filter(agreed & asked).exclude(Exists(labels))


def _of_task(task: str) -> dict[str, Any]:
    """Returns the columns of the task, which is at this path, that a row of a response needs."""
    settled = Adjudication.objects.filter(task=OuterRef(task), is_current=True)
    names = ["external_id", "prompt_hash", "conversation", "redacted_at", "imported_preference"]
    return {
        "of_task": F(task),
        **{f"task_{name}": F(f"{task}__{name}") for name in names},
        **{name: F(f"{task}__consensus__{name}") for name in ("preference", "pairs", "kept")},
        "from_source": KeyTextTransform("source", f"{task}__metadata"),
        "settled_preference": Subquery(settled.values("preference")),
        "settled_ranking": Subquery(settled.values("ranking")),
    }


def _by_task(rows: Any) -> Iterator[tuple[int, list[Row]]]:
    grouped = groupby(rows.iterator(chunk_size=CHUNK), key=itemgetter("of_task"))
    return ((task, list(group)) for task, group in grouped)


def _batches(groups: Iterator[tuple[int, list[Row]]]) -> Iterator[list[tuple[int, list[Row]]]]:
    batch = []
    for group in groups:
        batch.append(group)
        if len(batch) == CHUNK:
            yield batch
            batch = []
    if batch:
        yield batch


def _kept_ratings(annotations: list[int]) -> dict[int, list[dict[str, int]]]:
    """Returns the kept raters' scores by response, from which the ceiling of human agreement is computed."""
    by_response = defaultdict(list)
    rows = Rating.objects.filter(annotation__in=annotations).order_by("annotation").values_list("response", "scores")
    for response, scores in rows:
        by_response[response].append(scores)
    return by_response


def _row(group: list[Row], ratings: dict[int, list[dict[str, int]]]) -> Row:
    first = group[0]
    return (
        _some("source", first["from_source"])
        | {
            "task": first["task_external_id"],
            "prompt_hash": first["task_prompt_hash"],
            "conversation": first["task_conversation"],
            "responses": [
                _some("model", response["model"])
                | {
                    "id": str(response["response_pk"]),
                    "text": response["text"],
                    "scores": response["means"],
                    "labels": response["scores"],
                    "ratings": []
                    if response["source"] == Label.Source.IMPORTED
                    else ratings.get(response["response_pk"], []),
                }
                for response in group
            ],
            "preference": _preference(first),
        }
        | _some("pairs", _pairs(group))
    )


def _some(key: str, value: object) -> Row:
    """Returns a part of a row that is left out where the value is empty."""
    return {key: value} if value else {}


def _pairs(group: list[Row]) -> list[list[int]]:
    """Returns the places of every two responses that a ranking tells apart, the better one first."""
    settled, places = group[0]["settled_ranking"], {row["response_pk"]: place for place, row in enumerate(group)}
    pairs = pairs_of(settled) if settled else group[0]["pairs"] or []
    return [[places[better], places[worse]] for better, worse in pairs if better in places and worse in places]


def _preference(row: Row) -> int | None:
    """Returns the reviewer's preference where there is one, else the annotators', else the imported one."""
    if row["settled_preference"] is not None:
        return _valid(row["settled_preference"])
    return row["preference"] if row["preference"] is not None else _valid(row["task_imported_preference"])


def _valid(preference: int | None) -> int | None:
    return preference if preference is not None and -3 <= preference <= 3 else None


def _check(project: Project, counts: dict[str, int]) -> None:
    if not counts["train_tasks"] or not counts["validation_tasks"]:
        raise NotEnoughLabels(
            f"{project.name} has {counts['train_tasks']} tasks with labels or preferences to learn from and "
            f"{counts['validation_tasks']} held out to judge by; both must be there. Label more tasks, or raise "
            f"validation_share (now {project.validation_share:g})."
        )


def _manifest(project: Project, folder: Path, counts: dict[str, int], now: datetime) -> dict[str, Any]:
    files = {name: _sha256(folder / name) for name in ("train.jsonl", "validation.jsonl")}
    attributes = project.attribute_keys()
    identity = {"format": FORMAT, "attributes": attributes, "files": files}
    return identity | {
        "project": project.slug,
        "content_hash": hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest(),
        "counts": dict(counts),
        "split": {"by": "prompt_hash", "validation_share": project.validation_share},
        "protocol": vars(Rules.of(project)),
        "taken_at": now.isoformat(),
    }


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _keep(project: Project, building: Path, manifest: dict[str, Any], written: Written) -> Snapshot:
    before = Snapshot.objects.filter(project=project, content_hash=manifest["content_hash"]).first()
    # By number, as another project may get the slug; the dot keeps it apart from folders that older versions named so.
    path = Path(before.path if before else f"snapshots/project.{project.pk}/{manifest['content_hash']}")
    final = settings.ARTIFACTS / path
    (building / "manifest.json").write_text(json.dumps(manifest, indent=2))
    final.parent.mkdir(parents=True, exist_ok=True)
    try:
        building.rename(final)
    except OSError:
        # The same content is there, written before or by another process at this very moment.
        if not (final / "manifest.json").is_file():
            raise
    return _stored(project, path, manifest, written)


@transaction.atomic
def _stored(project: Project, path: Path, manifest: dict[str, Any], written: Written) -> Snapshot:
    """Stores the snapshot's row and its tasks, and counts those that were redacted or deleted while it was written."""
    # While this lock is held no task of the project is redacted or deleted: else one that goes between the count below
    # and the rows of its tasks would be in the files and never be marked.
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [LOCK, project.pk])
    existing = Snapshot.objects.filter(project=project, content_hash=manifest["content_hash"]).first()
    if existing:
        # Its files have just been written again, so it is no longer erased.
        Snapshot.objects.filter(pk=existing.pk).update(erasing_at=None, erased_at=None)
        return existing
    counts = manifest["counts"]
    changed = _changed_meanwhile(written)
    snapshot = Snapshot.objects.create(
        project=project,
        content_hash=manifest["content_hash"],
        path=str(path),
        manifest=manifest,
        train_tasks=counts["train_tasks"],
        validation_tasks=counts["validation_tasks"],
        labels=counts["train_labels"] + counts["validation_labels"],
        **changed,
        marked_at=database_now() if any(changed.values()) else None,
    )
    SnapshotTask.objects.bulk_create(SnapshotTask(task_id=task, snapshot=snapshot) for task in written.tasks)
    audit.record("snapshot.taken", f"snapshot {snapshot.content_hash[:12]}", project=project, **counts)
    return snapshot


def _changed_meanwhile(written: Written) -> dict[str, int]:
    present = dict(Task.objects.filter(pk__in=written.tasks).values_list("pk", "redacted_at"))
    redacted = sum(written.tasks[task] != redacted_at for task, redacted_at in present.items())
    return {"redacted_tasks": redacted, "deleted_tasks": len(written.tasks) - len(present)}
