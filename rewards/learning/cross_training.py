"""Fine-tunes once more for each fold of the train prompts, so that a fine-tuned network is judged on these as well.

A ridge predicts the prompts that it has not seen for nothing; a network costs a training for each fold.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rewards.learning import distributed
from rewards.learning.baseline import Baseline, Reward, fitted, set_head
from rewards.learning.config import TrainConfig
from rewards.learning.cross_fit import FOLDS, folds
from rewards.learning.data import Floats
from rewards.learning.depth import read, settle
from rewards.learning.finetune import Run, fine_tune
from rewards.learning.inference import predict
from rewards.learning.model import Loaded
from rewards.learning.progress import Progress
from rewards.learning.sharding import layers_of
from rewards.learning.splits import Part, Parts, without_prompts

CrossFitted = tuple[Floats, Floats]
"""Predictions and means, both [rows, attributes]: see `cross_trained`."""


@dataclass(frozen=True)
class Trainings:
    """What all folds share. `load` returns the backbone anew; `folder` keeps the folds that are done, for a restart."""

    config: TrainConfig
    reward: Reward
    load: Callable[[], Loaded]
    folder: Path
    identity: str
    progress: Progress


def fits_budget(config: TrainConfig, *, seconds: float, elapsed: float) -> bool:
    """Returns whether all folds together will take no longer than the configuration grants.

    seconds: what the fine-tuning on all rows took; elapsed: since the run began, of which `max_hours` is the most.
    """
    expected = seconds * (FOLDS - 1)  # each of the folds learns from all but one part in FOLDS
    left = config.max_hours * 3600 - elapsed if config.max_hours else float("inf")
    # Half of what is left: a run that exceeds its hours fails, and its model is lost.
    return expected <= min(config.cross_fit_minutes * 60, left / 2)


def cross_trained(trainings: Trainings, parts: Parts, baseline: Baseline) -> CrossFitted | None:
    """Predicts each train row by a network that has not seen its prompt, and by the mean of the labels it has seen.

    Both are [rows, attributes], in the order of `parts.train()`. Returns None with fewer prompts than folds, or where a
    fold leaves an attribute without labels.
    """
    labels, prompts = baseline.labels(), np.asarray(baseline.prompts())
    fold = folds(prompts, seed=trainings.config.seed)
    if fold is None:
        return None
    scores, means = np.zeros(labels.shape), np.zeros(labels.shape)
    for number in range(FOLDS):
        held = fold == number
        fit, dev = (without_prompts(part, set(prompts[held])) for part in parts.train())
        if not _is_learnable(fit):
            return None
        scores[held] = _of_fold(trainings, number, fit, dev, parts, baseline, held)
        known = labels[~held]
        means[held] = np.nanmean(known, axis=0) if np.isfinite(known).any() else 0.0
    return scores, means


def _is_learnable(fit: Part) -> bool:
    labelled = np.isfinite(fit.rows.answers.labels).any(axis=0)
    return bool(labelled.all() or (not labelled.any() and len(fit.rows.answers.pairs)))


def _of_fold(
    trainings: Trainings, number: int, fit: Part, dev: Part, parts: Parts, baseline: Baseline, held: NDArray[np.bool_]
) -> Floats:
    """[held rows, attributes]: the predictions of the fold's network, from its file if a former attempt left one."""
    stored = trainings.folder / f"{number}.npy"
    if distributed.from_first(stored.is_file):
        return distributed.from_first(lambda: np.load(stored))
    loaded = trainings.load()
    network = loaded.network
    read(network, list(layers_of(network.network))[: baseline.layers])
    settle(network)
    # The head starts from a ridge that has seen none of the fold's prompts either; only the first process has features.
    of_fit = np.flatnonzero(~held[: len(parts.fit.rows.encoded)])
    features = baseline.features[of_fit] if distributed.is_first() else baseline.features
    set_head(loaded, features, fitted(loaded, features, [fit], trainings.config, trainings.reward))
    checkpoint = trainings.folder / f"{number}-checkpoint"
    silent = Progress(trainings.folder / "progress.jsonl", silent=True)
    identity = f"{trainings.identity}:fold {number}"
    fine_tune(Run(trainings.config, loaded, fit.rows, dev.rows, trainings.reward, silent, checkpoint, identity))
    encoded = [sample for part in parts.train() for sample in part.rows.encoded]
    rows = [encoded[row] for row in np.flatnonzero(held)]
    scores = predict(loaded, rows, batch_tokens=trainings.config.batch_tokens)
    if distributed.is_first():
        _store(stored, scores)
        shutil.rmtree(checkpoint, ignore_errors=True)
    trainings.progress.tell("fold", number=number + 1, folds=FOLDS)
    return scores


def _store(place: Path, scores: Floats) -> None:
    place.parent.mkdir(exist_ok=True)
    # Renamed when it is whole: a kill must not leave half a file that a restart would take for the fold's.
    unfinished = place.with_suffix(".unfinished")
    with unfinished.open("wb") as file:
        np.save(file, scores)
    unfinished.replace(place)
