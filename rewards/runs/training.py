"""Takes one claimed run from snapshot to verdict: runs the trainer, judges the candidate and registers the model."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.db import transaction

from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.db.retries import outlasting_outages
from annotator.infrastructure.storage import store, working_copies
from annotator.models import Project
from rewards import announcements
from rewards.evaluation import evaluation, largest_errors
from rewards.learning.data import Task, by_segments, read_tasks, scales_of
from rewards.models import RewardModel, RunState, Snapshot, TrainingRun
from rewards.promotion import promotion
from rewards.runs import repeated_runs, run_settings
from rewards.trainer import mirroring, owned_runs, run_steps
from rewards.trainer.trainer_process import TrainerFailed, supervise

CROSS_FITTED = "cross_fitted.jsonl"
"""What the candidate predicts of each train row, having learnt from the other prompts only."""


def carry_out(run: TrainingRun) -> RewardModel | None:
    """Takes a claimed run to its end and returns the new model.

    Every write is fenced by the attempt, and waits while the database restarts.

    Raises:
        Refusal: the run cannot succeed.
        NothingNew: the run would only repeat another one.
        LostRun: another attempt owns the run, or it was cancelled.
        Postponed: the worker is being stopped, or the trainer was killed; the run goes on later.
    """
    with run_steps.full_disk_named():
        run_steps.check_files(run)
        snapshot = run.snapshot or run_steps.new_snapshot(run, refuse_repetition=repeated_runs.refuse_repetition)
        owned_runs.write(run, snapshot=snapshot, state=RunState.TRAINING, code_version=repeated_runs.code_version())
        folder = mirroring.brought(run)
        folder.mkdir(parents=True, exist_ok=True)
        config = run_settings.for_trainer(run.config, snapshot=str(store.bring(snapshot.directory())))
        (folder / "config.json").write_text(json.dumps(config, indent=2))
        supervise(run, "train", folder)
        owned_runs.write(run, state=RunState.EVALUATING, heartbeat_at=database_now())
        metrics = json.loads((folder / "metrics.json").read_text())
        # The held-out responses on which the candidate is furthest from people; none if only its order counts.
        metrics["largest_errors"] = []
        if _on_scale(_manifest(run)):
            held_out = read_tasks(snapshot.directory() / "validation.jsonl")
            metrics["largest_errors"] = largest_errors.largest(held_out, folder / "predictions.jsonl")
        champion = run_steps.champion_of(run.project)
        # After a change of the rubric it may predict none of the candidate's attributes. Then the candidate is judged
        # as a first model is.
        if champion and not set(champion.attributes) & set(_manifest(run)["attributes"]):
            champion = None
        store.bring(snapshot.directory())
        verdict = _judge(run, snapshot, champion, metrics)
        mirroring.keep(run)
        owned_runs.write(run, state=RunState.AWAITING_PROMOTION, metrics=metrics, verdict=verdict.as_json())
        model = _register(run, snapshot, champion, verdict)
        store.discard(run.directory() / mirroring.CHECKPOINT)
        return model


# The verdict -----------------------------------------------------------------------------------------------


def _judge(
    run: TrainingRun, snapshot: Snapshot, champion: RewardModel | None, metrics: Mapping[str, Any]
) -> promotion.Verdict:
    """Judges the candidate against the champion, or where there is none against the mean and the longer response.

    All of them are judged on the same prompts, from which none has learnt: the snapshot's held-out ones and, where the
    candidate was cross-fitted, its train prompts as well.
    """
    manifest = _manifest(run)
    weights, levels = manifest["attribute_weights"], snapshot.manifest.get("levels", {})
    # The labels hold attributes of every version of the rubric.
    shared = {*manifest["attributes"]} & {*(champion.attributes if champion else manifest["attributes"])}
    held_out, train = (_tasks(snapshot, part, manifest) for part in ("validation", "train"))
    crossed, means = _cross_fitted(run.directory() / CROSS_FITTED)
    train = [task for task in train if _is_predicted(task, crossed)]
    ours = _predictions(run.directory() / "predictions.jsonl") | crossed
    theirs: dict[str, promotion.Predicted] = {}
    if champion:
        # Judged here whatever it has learnt from: its page shows both models on the same held-out rows.
        theirs = _champions_predictions(run, champion, snapshot.directory() / "validation.jsonl", "champion")
        learnt = run_steps.learnt_prompts(champion)
        held_out = [task for task in held_out if task.prompt_hash not in (learnt or ())]
        if train and learnt is not None:
            theirs |= _on_train_prompts(run, snapshot, champion, train, learnt)
        train = [task for task in train if _is_predicted(task, theirs)]
    tasks = promotion.with_alike([*held_out, *train], ours, *([theirs] if champion else []))
    rival: promotion.HeldOut | None = None
    if champion:
        rival = promotion.held_out(
            tasks,
            theirs,
            weights=weights,
            metrics=_guarding(json.loads((run.directory() / "champion" / "metrics.json").read_text()), snapshot),
            levels=levels,
            on_scale=_on_scale(champion.manifest),
            attributes=shared,
        )
    mean_scores = dict(zip(manifest["attributes"], metrics["mean"]["values"], strict=True))
    means |= {response.id: promotion.Predicted(mean_scores, 0.0) for task in held_out for response in task.responses}
    return promotion.decide(
        promotion.held_out(
            tasks,
            ours,
            weights=weights,
            metrics=_guarding(metrics["candidate"], snapshot),
            levels=levels,
            on_scale=_on_scale(manifest),
            attributes=shared,
        ),
        rival,
        promotion.held_out(tasks, means, weights=weights, levels=levels, attributes=shared),
        longer=promotion.by_length(tasks, weights=weights),
        # Each comparison with one champion, or of first models with the mean, is a chance to be fooled.
        look=1 + RewardModel.objects.filter(project=run.project, parent=champion).count(),
    )


def _guarding(metrics: Mapping[str, Any], snapshot: Snapshot) -> Mapping[str, Any]:
    """Returns the measures that can keep a model from promotion.

    Those of segments that are made of selected words cannot: an attribute may have two or three of them.
    """
    attributes, aspects = (set(snapshot.manifest.get(name) or ()) for name in ("attributes", "aspects"))
    return {name: value for name, value in metrics.items() if name != "segments" or aspects - attributes}


def _tasks(snapshot: Snapshot, part: str, manifest: Mapping[str, Any]) -> list[Task]:
    """Returns the tasks of a part, with the means over their segments for a model that has learnt these as scores."""
    path = snapshot.directory() / f"{part}.jsonl"
    if not manifest.get("by_segments"):
        return list(read_tasks(path))
    # In the order of the rows, which have aspects that the model has not learnt as well.
    aspects = scales_of(snapshot.manifest["aspects"], snapshot.manifest.get("levels", {}))
    return list(by_segments(list(read_tasks(path, aspects=aspects))))


def _is_predicted(task: Task, predicted: Mapping[str, promotion.Predicted]) -> bool:
    return all(response.id in predicted for response in task.responses)


def _cross_fitted(path: Path) -> tuple[dict[str, promotion.Predicted], dict[str, promotion.Predicted]]:
    """Returns, by response id, what a model that has not learnt from its prompt predicts, and the mean that it knew.

    Both are empty for a model that was not cross-fitted: one of an earlier version, or a network that takes too long.
    """
    if not path.is_file():
        return {}, {}
    with path.open() as file:
        rows = [json.loads(line) for line in file]
    means = {row["id"]: promotion.Predicted(row["means"], 0.0) for row in rows}
    return {row["id"]: promotion.predicted_in(row) for row in rows}, means


def _on_train_prompts(
    run: TrainingRun, snapshot: Snapshot, champion: RewardModel, train: list[Task], learnt: set[str]
) -> dict[str, promotion.Predicted]:
    """Returns the champion's predictions, by response id, for those of the candidate's train prompts that are fair.

    Prompts that are new to it it predicts as it is. Of those that it has learnt from, it has said at its own training
    what it predicts without them.
    """
    crossed, _ = _cross_fitted(store.bring(champion.run.directory() / CROSS_FITTED))
    predicted = {
        response.id: crossed[response.id]
        for task in train
        if task.prompt_hash in learnt
        for response in task.responses
        if response.id in crossed
    }
    new = [task for task in train if task.prompt_hash not in learnt]
    if new:
        # All of the train part is read, not a copy of the new rows: no file but a snapshot's may hold people's texts.
        directly = _champions_predictions(run, champion, snapshot.directory() / "train.jsonl", "champion-train")
        predicted |= {response.id: directly[response.id] for task in new for response in task.responses}
    return predicted


def _champions_predictions(
    run: TrainingRun, champion: RewardModel, data: Path, folder: str
) -> dict[str, promotion.Predicted]:
    """Has the champion predict the rows of a file; the files of that are kept in a folder of the run."""
    work = run.directory() / folder
    work.mkdir(exist_ok=True)
    # With as many processes as the training: a model of which each held a part may fit into no single one.
    together = {"processes": run.config.get("processes", 0)}
    model = store.bring(champion.directory())
    config = {"model": str(model), "data": str(data), **together}
    (work / "config.json").write_text(json.dumps(config))
    try:
        with working_copies.using(model):
            supervise(run, "evaluate", work)
    except TrainerFailed as failed:
        raise TrainerFailed(f"The champion, version {champion.version}, could not be judged. {failed}") from failed
    return _predictions(work / "predictions.jsonl")


def _manifest(run: TrainingRun) -> dict[str, Any]:
    stored: dict[str, Any] = json.loads((run.directory() / "model" / "reward_model.json").read_text())
    return stored


def _on_scale(manifest: Mapping[str, Any]) -> bool:
    """Returns whether a model's scores are on the scale of the labels; models from before there were stages are."""
    return manifest.get("training", {}).get("stages", promotion.ON_SCALE)[-1] in promotion.ON_SCALE


def _predictions(path: Path) -> dict[str, promotion.Predicted]:
    with path.open() as file:
        rows = [json.loads(line) for line in file]
    return {row["id"]: promotion.predicted_in(row) for row in rows}


@outlasting_outages
@transaction.atomic
def _register(
    run: TrainingRun, snapshot: Snapshot, champion: RewardModel | None, verdict: promotion.Verdict
) -> RewardModel | None:
    """Stores the model's row, its evaluation and, by the verdict, its promotion: all or nothing, once for a run."""
    now = database_now()
    # A promotion or an erasure by hand waits until all of it is there.
    project = Project.objects.select_for_update().get(pk=run.project_id)
    if not verdict.promote:
        owned_runs.write(run, state=RunState.REJECTED, finished_at=now)
    elif project.promote_automatically:
        owned_runs.write(run, state=RunState.PROMOTED, finished_at=now)
    else:
        owned_runs.write(run, state=RunState.AWAITING_PROMOTION)
    announcements.run_ended(run, RunState(run.state))
    model = _stored(run, snapshot, champion)
    if verdict.promote and project.promote_automatically:
        promotion.promote(model, now=now)
    return model


def _stored(run: TrainingRun, snapshot: Snapshot, champion: RewardModel | None) -> RewardModel:
    manifest = _manifest(run)
    latest = RewardModel.objects.filter(project=run.project).order_by("-version").first()
    model = RewardModel.objects.create(
        project=run.project,
        run=run,
        parent=champion,
        version=latest.version + 1 if latest else 1,
        path=f"runs/{run.pk}/model",
        attributes=manifest["attributes"],
        attribute_weights=manifest["attribute_weights"],
        manifest=manifest,
    )
    data_hash = snapshot.manifest["files"]["validation.jsonl"]
    evaluation.store(model, name=evaluation.VALIDATION, data_hash=data_hash, metrics=run.metrics["candidate"])
    if champion:
        judged = json.loads((run.directory() / "champion" / "metrics.json").read_text())
        evaluation.store(champion, name=evaluation.VALIDATION, data_hash=data_hash, metrics=judged)
    return model
