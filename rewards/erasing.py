"""Texts that were redacted or deleted, on the disk too: old snapshots and what was trained on them go, rows stay.

Triggers mark the snapshots (rewards/migrations/0002_lineage_and_marks.py); erasing is a manager's decision.
"""

import shutil
from collections.abc import Iterator
from datetime import datetime
from functools import partial
from pathlib import Path

from django.conf import settings
from django.db import transaction

from annotator import audit
from annotator.models import Project
from annotator.refusals import Refusal
from rewards.models import OwnerlessFolder, RewardModel, RunState, Snapshot, TrainingRun


class NothingToErase(Refusal):
    """The snapshot holds nothing that was redacted or deleted, or is gone already."""

    code = "nothing_to_erase"


class StillNeeded(Refusal):
    """The champion has learnt from the snapshot, or a run works on it."""

    code = "still_needed"


@transaction.atomic
def erase(snapshot: Snapshot, *, now: datetime) -> Snapshot:
    """Takes the files of a marked snapshot off the disk, with those of every run and model that saw it.

    Raises:
        NothingToErase, StillNeeded: as they say.
    """
    Project.objects.select_for_update().get(pk=snapshot.project_id)
    snapshot.refresh_from_db()
    _check(snapshot)
    snapshot.erased_at = now
    snapshot.save(update_fields=["erased_at"])
    models = RewardModel.objects.filter(run__snapshot=snapshot).order_by("version")
    versions = list(models.values_list("version", flat=True))
    audit.record("snapshot.erased", f"snapshot {snapshot.content_hash[:12]}", project=snapshot.project, models=versions)
    transaction.on_commit(partial(_remove, list(_folders(snapshot))))
    return snapshot


def _check(snapshot: Snapshot) -> None:
    if snapshot.erased_at:
        raise NothingToErase("This snapshot has been erased already.")
    if not snapshot.marked_at:
        raise NothingToErase("No task of this snapshot has been redacted or deleted since: there is nothing to forget.")
    champion = RewardModel.objects.filter(run__snapshot=snapshot, is_champion=True).first()
    if champion:
        raise StillNeeded(f"Version {champion.version}, the champion, learnt from it: promote another model first.")
    run = TrainingRun.objects.active().filter(snapshot=snapshot).first()
    if run:
        raise StillNeeded(f"Run {run.pk} works with it: wait for its end, or cancel it.")


def _folders(snapshot: Snapshot) -> Iterator[Path]:
    yield snapshot.directory()
    yield from (run.directory() for run in snapshot.runs.all())


def _remove(folders: list[Path]) -> None:
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def sweep() -> list[Path]:
    """Removes what was left: by deleted projects, by a removal that was cut short, by runs that ended half-way."""
    erased = Snapshot.objects.filter(erased_at__isnull=False)
    found = [folder for snapshot in erased for folder in _folders(snapshot) if folder.exists()]
    ownerless = list(OwnerlessFolder.objects.all())
    found += [settings.ARTIFACTS / each.path for each in ownerless]
    found += list(_leftovers())
    _remove(found)
    OwnerlessFolder.objects.filter(pk__in=[each.pk for each in ownerless]).delete()
    return found


def _leftovers() -> Iterator[Path]:
    """What a failed or cancelled run had not finished writing: nobody goes on from there."""
    ended = TrainingRun.objects.filter(state__in=(RunState.FAILED, RunState.CANCELLED))
    over = {str(pk) for pk in ended.values_list("pk", flat=True)}
    for name in ("checkpoint", ".*.unfinished"):
        found = (settings.ARTIFACTS / "runs").glob(f"*/{name}")
        yield from (folder for folder in found if folder.parent.name in over)
