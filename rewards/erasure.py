"""Texts that were redacted or deleted, on the disk too: old snapshots and what was trained on them go, rows stay.

Triggers mark the snapshots (rewards/migrations/0002_lineage_and_marks.py); erasing is a manager's decision.
"""

import shutil
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import partial
from pathlib import Path

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet

from annotator import audit
from annotator.background import failures
from annotator.models import Project
from annotator.refusals import Refusal
from annotator.storage import artifacts
from rewards.models import OwnerlessFolder, RewardModel, RunState, Snapshot, TrainingRun


class NothingToErase(Refusal):
    """The snapshot holds nothing that was redacted or deleted, or is gone already."""

    code = "nothing_to_erase"


class StillNeeded(Refusal):
    """The champion has learnt from the snapshot, or a run works on it."""

    code = "still_needed"


class NotRemoved(Refusal):
    """Some files could not be removed; until they are, nothing is erased."""

    status = 500
    code = "not_removed"


def erase(snapshot: Snapshot, *, now: datetime) -> Snapshot:
    """Takes the files of a marked snapshot off the disk, with those of every run and model that saw it.

    It counts as erased once they are gone. From the first step on nobody uses them, and what could not be removed the
    sweep tries again.

    Raises:
        NothingToErase, StillNeeded: as they say.
        ForeignArtifacts: the files are not where this process would look for them.
        NotRemoved: some are still there.
    """
    artifacts.require_ours()
    _begin(snapshot, now=now)
    if left := _remove(_folders(snapshot)):
        raise NotRemoved(f"Not erased: {_told(left)} The rest is gone, and this is tried again every minute.")
    _finish(snapshot, now=now)
    return snapshot


@transaction.atomic
def _begin(snapshot: Snapshot, *, now: datetime) -> None:
    Project.objects.select_for_update().get(pk=snapshot.project_id)
    snapshot.refresh_from_db()
    _check(snapshot)
    snapshot.erasing_at = now
    snapshot.save(update_fields=["erasing_at"])


@transaction.atomic
def _finish(snapshot: Snapshot, *, now: datetime) -> None:
    """Unless somebody else has, or the same labels were taken anew meanwhile."""
    snapshot.erased_at = now
    if not Snapshot.objects.filter(pk=snapshot.pk, erased_at=None, erasing_at__isnull=False).update(erased_at=now):
        return
    models = RewardModel.objects.filter(run__snapshot=snapshot).order_by("version")
    versions = list(models.values_list("version", flat=True))
    audit.record("snapshot.erased", f"snapshot {snapshot.content_hash[:12]}", project=snapshot.project, models=versions)


def _check(snapshot: Snapshot) -> None:
    if snapshot.erased_at:
        raise NothingToErase("This snapshot has been erased already.")
    if not snapshot.marked_at:
        raise NothingToErase(
            "No task of this snapshot has been redacted or deleted since it was taken, so there is nothing to erase."
        )
    champion = RewardModel.objects.filter(run__snapshot=snapshot, is_champion=True).first()
    if champion:
        raise StillNeeded(f"Version {champion.version}, the champion, learnt from it. Promote another model first.")
    run = TrainingRun.objects.active().filter(snapshot=snapshot).first()
    if run:
        raise StillNeeded(f"Run {run.pk} is using it. Wait until the run ends, or cancel it.")


def _folders(snapshot: Snapshot) -> Iterator[Path]:
    yield snapshot.directory()
    yield from (run.directory() for run in snapshot.runs.all())


def _remove(folders: Iterable[Path]) -> dict[Path, OSError]:
    """Removes what can be removed; what is still there, and why."""
    left: dict[Path, OSError] = {}
    for folder in folders:
        try:
            shutil.rmtree(folder)
        except FileNotFoundError:
            pass
        except OSError as error:
            left[folder] = error
    return left


def _told(left: Mapping[Path, OSError]) -> str:
    return " ".join(f"{path.relative_to(settings.ARTIFACTS)} stays ({why.strerror})." for path, why in left.items())


def sweep(*, now: datetime) -> list[Path]:
    """Removes what was left: by deleted projects, by a removal that was cut short, by runs that ended half-way.

    Raises:
        ForeignArtifacts: these are the files of another installation, or there are none.
        NotRemoved: some could not be removed.
    """
    artifacts.require_ours()
    asked = Snapshot.objects.filter(Q(erasing_at__isnull=False) | Q(erased_at__isnull=False))
    removed: list[Path] = []
    projects = Project.objects.filter(snapshots__in=asked).distinct()
    with_left = partial(_sweep_project, asked=asked, removed=removed, now=now)
    failures.each_project("sweep_erased", projects, with_left)
    ownerless = {settings.ARTIFACTS / each.path: each.pk for each in OwnerlessFolder.objects.all()}
    rest = [*ownerless, *_leftovers()]
    left = _remove(rest)
    OwnerlessFolder.objects.filter(pk__in=[pk for path, pk in ownerless.items() if path not in left]).delete()
    if left:
        raise NotRemoved(_told(left))
    return removed + rest


def _sweep_project(project: Project, *, asked: QuerySet[Snapshot], removed: list[Path], now: datetime) -> int:
    for snapshot in asked.filter(project=project).select_related("project"):
        folders = [folder for folder in _folders(snapshot) if folder.exists()]
        if left := _remove(folders):
            raise NotRemoved(_told(left))
        removed += folders
        if snapshot.erased_at is None:
            _finish(snapshot, now=now)
    return 1


def _leftovers() -> Iterator[Path]:
    """What a failed or cancelled run had not finished writing: nobody goes on from there."""
    ended = TrainingRun.objects.filter(state__in=(RunState.FAILED, RunState.CANCELLED))
    over = {str(pk) for pk in ended.values_list("pk", flat=True)}
    for name in ("checkpoint", ".*.unfinished"):
        found = (settings.ARTIFACTS / "runs").glob(f"*/{name}")
        yield from (folder for folder in found if folder.parent.name in over)
