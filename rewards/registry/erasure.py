"""Erases redacted and deleted texts from the disk: the files of old snapshots and of models trained on them.

The rows stay. Triggers mark the snapshots (rewards/models/triggers/); erasing is a manager's
decision.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import partial
from pathlib import Path

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from annotator.infrastructure import audit
from annotator.infrastructure.background import failures
from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.refusals import Refusal
from annotator.infrastructure.storage import artifacts, store, working_copies
from annotator.infrastructure.storage.object_store import StoreAway
from annotator.infrastructure.storage.working_copies import name_of
from annotator.models import Project, StoredFile
from rewards.models import EvaluationJob, OwnerlessFolder, RewardModel, RunState, Snapshot, TrainingRun


class NotRemoved(Refusal):
    """Some files could not be removed; until they are, the snapshot does not count as erased."""

    status = 500
    code = "not_removed"


def erase(snapshot: Snapshot, *, now: datetime) -> Snapshot:
    """Removes the files of a marked snapshot from the disk, with those of every run and model that used it.

    It counts as erased once they are gone. From the first step on nobody uses them, and the sweep tries again to remove
    what could not be removed.

    Raises:
        Refusal: there is nothing to forget, or the files are in use.
        ForeignArtifacts: the files are not where this process would look for them.
        NotRemoved: some files could not be removed.
    """
    artifacts.require_ours()
    # In two transactions, as removing files cannot be rolled back: the first one makes everybody stop using them, so a
    # crash in between leaves a mark that the sweep finds.
    with transaction.atomic():
        # A promotion takes the same lock, so that the model does not become the champion between check and mark.
        Project.objects.select_for_update().get(pk=snapshot.project_id)
        snapshot.refresh_from_db()
        _check(snapshot)
        snapshot.erasing_at = now
        snapshot.save(update_fields=["erasing_at"])
    if failed := _remove(_folders(snapshot)):
        text = _("Not erased: %(folders)s The rest is gone, and this is tried again every minute.")
        raise NotRemoved(text % {"folders": _described(failed)})
    _finish(snapshot, now=now)
    return snapshot


@transaction.atomic
def _finish(snapshot: Snapshot, *, now: datetime) -> None:
    """Marks the snapshot as erased, unless somebody else has, or the same labels were written again meanwhile."""
    snapshot.erased_at = now
    # `snapshots.take` clears both marks when it writes the same content again: then these files are in use.
    if not Snapshot.objects.filter(pk=snapshot.pk, erased_at=None, erasing_at__isnull=False).update(erased_at=now):
        return
    models = RewardModel.objects.filter(run__snapshot=snapshot).order_by("version")
    versions = list(models.values_list("version", flat=True))
    audit.record("snapshot.erased", f"snapshot {snapshot.content_hash[:12]}", project=snapshot.project, models=versions)


def _check(snapshot: Snapshot) -> None:
    if snapshot.erased_at:
        raise Refusal(_("This snapshot has been erased already."), code="nothing_to_erase")
    if not snapshot.marked_at:
        raise Refusal(
            _(
                "No task of this snapshot has been redacted or deleted since it was taken, so there is nothing to "
                "erase."
            ),
            code="nothing_to_erase",
        )
    champion = RewardModel.objects.filter(run__snapshot=snapshot, is_champion=True).first()
    if champion:
        text = _("Version %(version)s, the champion, learnt from it. Promote another model first.")
        raise Refusal(text % {"version": champion.version}, code="still_needed")
    run = TrainingRun.objects.active().filter(snapshot=snapshot).first()
    if run:
        raise Refusal(
            _("Run %(run)s is using it. Wait until the run ends, or cancel it.") % {"run": run.pk}, code="still_needed"
        )


def _folders(snapshot: Snapshot) -> Iterator[Path]:
    yield snapshot.directory()
    yield from (run.directory() for run in snapshot.runs.all())


def _remove(folders: Iterable[Path]) -> dict[Path, str]:
    """Removes the folders that can be removed; returns the others with the reasons."""
    failed: dict[Path, str] = {}
    for folder in folders:
        try:
            store.remove(folder)
        except OSError as error:
            failed[folder] = str(error.strerror)
        except StoreAway as away:
            failed[folder] = str(away)
    return failed


def _described(failed: Mapping[Path, str]) -> str:
    text = _("%(folder)s stays (%(reason)s).")
    return " ".join(text % {"folder": name_of(path), "reason": why} for path, why in failed.items())


def sweep(*, now: datetime) -> list[Path]:
    """Removes the leftovers of deleted projects, of removals that were cut short, and of runs that ended half-way.

    Raises:
        ForeignArtifacts: the folder holds the files of another installation, or none.
        NotRemoved: some files could not be removed.
    """
    artifacts.require_ours()
    asked = Snapshot.objects.filter(Q(erasing_at__isnull=False) | Q(erased_at__isnull=False))
    removed: list[Path] = []
    projects = Project.objects.filter(snapshots__in=asked).distinct()
    failures.each_project("sweep_erased", projects, partial(_sweep_project, asked=asked, removed=removed, now=now))
    ownerless = {settings.ARTIFACTS / folder.path: folder.pk for folder in OwnerlessFolder.objects.all()}
    rest = [*ownerless, *_leftovers()]
    failed = _remove(rest)
    # Only notes of folders that are gone are deleted, so that the next sweep tries the others again.
    OwnerlessFolder.objects.filter(pk__in=[pk for path, pk in ownerless.items() if path not in failed]).delete()
    if failed:
        raise NotRemoved(_described(failed))
    return removed + rest


working_copies.sweeps.append(lambda: sweep(now=database_now()))


def _sweep_project(project: Project, *, asked: QuerySet[Snapshot], removed: list[Path], now: datetime) -> int:
    for snapshot in asked.filter(project=project).select_related("project"):
        if not asked.filter(pk=snapshot.pk).exists():
            continue  # the same labels were taken again meanwhile
        folders = [folder for folder in _folders(snapshot) if store.is_left(folder)]
        if failed := _remove(folders):
            raise NotRemoved(_described(failed))
        removed += folders
        if snapshot.erased_at is None:
            _finish(snapshot, now=now)
    return 1


def _leftovers() -> Iterator[Path]:
    """Yields what nobody goes on from: folders that a run did not finish writing, files of ended evaluation jobs."""
    ended = TrainingRun.objects.filter(state__in=(RunState.FAILED, RunState.CANCELLED, RunState.DONE))
    over = {str(pk) for pk in ended.values_list("pk", flat=True)}
    for name in ("checkpoint", "rows", "judging", "reference", ".*.unfinished"):
        folders = (settings.ARTIFACTS / "runs").glob(f"*/{name}")
        yield from (folder for folder in folders if folder.parent.name in over)
    here = list((settings.ARTIFACTS / "runs").glob("*")) if store.is_remote() else []
    known = {str(pk) for pk in TrainingRun.objects.values_list("pk", flat=True)} if here else set()
    yield from (folder for folder in here if folder.name not in known)
    working = {str(pk) for pk in TrainingRun.objects.active().values_list("pk", flat=True)}
    for name in ("checkpoint", ".checkpoint-linked"):
        yield from (run / name for run in here if run.name in known - working and (run / name).exists())
    stored = StoredFile.objects.filter(path__startswith="runs/", path__contains="/checkpoint/", gone=False)
    for run in sorted({path.split("/")[1] for path in stored.values_list("path", flat=True)} - working):
        yield settings.ARTIFACTS / "runs" / run / "checkpoint"
    judged = store.places_in("evaluations")  # before the rows: one that is made meanwhile has its row already
    active = {str(pk) for pk in EvaluationJob.objects.active().values_list("pk", flat=True)}
    yield from (folder for folder in judged if folder.name not in active)
