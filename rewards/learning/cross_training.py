"""Predicts the train prompts by models that have not seen them, so that the candidate is judged on these as well.

A ridge does so in seconds; a network is fine-tuned once more for each fold of the prompts. With smaller subsets of each
fold's prompts the same trainings make a learning curve.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import astuple, dataclass
from itertools import chain, compress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rewards.learning import distributed
from rewards.learning.baseline import Baseline, Reward, cross_fitted_scores, read, refit_heads, settle
from rewards.learning.config import TrainConfig
from rewards.learning.cross_fit import FOLDS, folds
from rewards.learning.curve import FEWEST_PROMPTS, RMSE, WRONG, FoldErrors, curve_of
from rewards.learning.data import Floats
from rewards.learning.finetune import Diverged, OutOfMemory, TuningRun, fine_tune
from rewards.learning.inference import predict
from rewards.learning.model import Loaded
from rewards.learning.model_files import RIDGE
from rewards.learning.objectives import Objective
from rewards.learning.pairs import in_order
from rewards.learning.progress import Progress
from rewards.learning.results import CrossFitted, Evidence, Judged, TrainingContext
from rewards.learning.sharding import layers_of
from rewards.learning.splits import Parts, without_prompts

SHARES = (0.25, 0.5, 1.0)
"""The parts of a fold's prompts that the learning curve is drawn through."""


@dataclass(frozen=True)
class Trainings:
    """What all folds share. `load` returns the backbone anew; `folder` keeps the folds that are done, for a restart."""

    config: TrainConfig
    reward: Reward
    load: Callable[[], Loaded]
    folder: Path
    identity: str
    progress: Progress


def evidence_of(work: TrainingContext, baseline: Baseline, candidate: Judged, load: Callable[[], Loaded]) -> Evidence:
    """Returns what models of the candidate's kind predict of train rows whose prompts they have not seen.

    Nothing where there are too few prompts, or where a fine-tuned network would take longer than the budget.
    """
    trainings = Trainings(work.config, work.reward, load, work.directory / "folds", work.identity, work.progress)
    times = {"seconds": candidate.place.seconds, "elapsed": time.monotonic() - work.started}
    # Every process asks its own clock, and all must do the same.
    crosses, draws = distributed.agreed((fits_budget(work.config, **times), curve_fits(work.config, **times)))
    is_ridge = candidate.manifest.kind == RIDGE
    if is_ridge or crosses or draws:
        work.progress.tell("folds")
    crossed = cross_fitted_scores(baseline, work.config.alphas) if is_ridge and distributed.is_first() else None
    try:
        curve = fine_tuned_curve(trainings, work.parts, baseline) if draws else None
        if not is_ridge and (crosses or draws):
            crossed = cross_trained(trainings, work.parts, baseline)
    except (Diverged, OutOfMemory) as failed:
        # The model is there, and the held-out prompts judge it alone. But of several processes only one runs out of
        # memory, and the others wait for it.
        if isinstance(failed, OutOfMemory) and distributed.size() > 1:
            raise
        work.progress.tell("folds_given_up", reason=str(failed))
        return Evidence(crossed)
    return Evidence(crossed, curve)


def fits_budget(config: TrainConfig, *, seconds: float, elapsed: float) -> bool:
    """Returns whether all folds together will take no longer than the configuration grants.

    seconds: what the fine-tuning on all rows took; elapsed: since the run began, of which `max_hours` is the most.
    """
    expected = seconds * (FOLDS - 1)  # each of the folds learns from all but one part in FOLDS
    return expected <= config.cross_fit_minutes * 60 and _leaves_time(config, expected, elapsed)


def curve_fits(config: TrainConfig, *, seconds: float, elapsed: float) -> bool:
    """Returns whether the hours of the run leave time for a curve of fine-tuned networks, if one is asked for."""
    expected = seconds * (FOLDS - 1) * sum(SHARES)
    return config.fine_tuned_curve and _leaves_time(config, expected, elapsed)


def _leaves_time(config: TrainConfig, expected: float, elapsed: float) -> bool:
    # Half of what is left: a run that exceeds its hours fails, and its model is lost.
    return not config.max_hours or expected <= (config.max_hours * 3600 - elapsed) / 2


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
        predicted = _predicted(trainings, f"{number}", set(prompts[held]), held, parts, baseline)
        if predicted is None:
            return None
        scores[held] = predicted
        known = labels[~held]
        means[held] = np.nanmean(known, axis=0) if np.isfinite(known).any() else 0.0
    return scores, means


def fine_tuned_curve(trainings: Trainings, parts: Parts, baseline: Baseline) -> dict[str, Any] | None:
    """Returns the learning curve of fine-tuning as JSON, as `curve.learning_curve` has it, with the sizes of SHARES.

    In each fold the subsets are nested. Returns None with fewer than FEWEST_PROMPTS prompts, or where a subset leaves
    an attribute without labels or a fold holds nothing to judge by.
    """
    prompts = np.asarray(baseline.prompts())
    fold = folds(prompts, seed=trainings.config.seed)
    if fold is None or len(set(prompts)) < FEWEST_PROMPTS:
        return None
    # A stage that only compares leaves the scale of the labels.
    regresses = Objective(trainings.config.stages[-1], trainings.reward).regresses
    measure = RMSE if baseline.is_rated() and regresses else WRONG
    random = np.random.default_rng(trainings.config.seed)
    results = []
    for number in range(FOLDS):
        held = fold == number
        others = random.permutation(np.unique(prompts[~held]))
        errors: list[FoldErrors] = []
        for share in SHARES:
            size = round(share * len(others))
            away = {*prompts[held], *others[size:]}
            name = f"{number}" if share == 1 else f"{number}-{share:g}"
            predicted = _predicted(trainings, name, away, held, parts, baseline)
            if predicted is None:
                return None
            scores = np.full(baseline.labels().shape, np.nan)
            scores[held] = predicted
            pairs = baseline.pairs()[held[baseline.pairs()].all(axis=1)]
            rewards = scores @ np.asarray(trainings.reward)
            ahead = rewards[pairs[:, 0]] - rewards[pairs[:, 1]]
            accuracy = float(in_order(ahead).mean()) if len(pairs) else float("nan")
            squares = (predicted - baseline.labels()[held]) ** 2
            squared = float(np.nanmean(squares)) if np.isfinite(squares).any() else float("nan")
            error = squared if measure == RMSE else 1 - accuracy
            answered = _answered(baseline, (~np.isin(prompts, list(away))), measure)
            errors.append(FoldErrors(np.array([float(answered)]), np.array([error]), np.array([accuracy])))
        results.append(FoldErrors(*(np.concatenate(values) for values in zip(*map(astuple, errors), strict=True))))
    if not all(np.isfinite(result.errors).all() for result in results):
        return None
    sizes = [round(share * len(set(prompts)) * (1 - 1 / FOLDS)) for share in SHARES]
    now = _answered(baseline, np.ones(len(prompts), dtype=bool), measure)
    return curve_of(results, sizes, measure=measure, now=now, seed=trainings.config.seed)


def _answered(baseline: Baseline, rows: NDArray[np.bool_], measure: str) -> int:
    """Returns the number of the rows [rows] that are rated, or of the pairs among them, as the measure has it."""
    if measure == WRONG:
        return int(rows[baseline.pairs()].all(axis=1).sum())
    return int(np.isfinite(baseline.labels()[rows]).any(axis=1).sum())


def _predicted(
    trainings: Trainings, name: str, away: set[str], held: NDArray[np.bool_], parts: Parts, baseline: Baseline
) -> Floats | None:
    """[held rows, attributes]: what a network predicts that was trained without the prompts in `away`.

    They come from the file of this name if a former attempt left one. Returns None where the other prompts leave an
    attribute without labels.
    """
    fit, dev = (without_prompts(part, away) for part in parts.train())
    labelled = np.isfinite(fit.rows.answers.labels).any(axis=0)
    if not (labelled.all() or (not labelled.any() and len(fit.rows.answers.pairs))):
        return None
    stored = trainings.folder / f"{name}.npy"
    if distributed.from_first(stored.is_file):
        former: Floats = distributed.from_first(lambda: np.load(stored))
        return former
    loaded = trainings.load()
    read(loaded.network, list(layers_of(loaded.network.network))[: baseline.layers])
    settle(loaded.network)
    # The heads start from ridges that have not seen these prompts either.
    refit_heads(loaded, baseline, fit, trainings.config, away=away)
    checkpoint = trainings.folder / f"{name}-checkpoint"
    silent = Progress(trainings.folder / "progress.jsonl", silent=True)
    identity = f"{trainings.identity}:fold {name}"
    fine_tune(TuningRun(trainings.config, loaded, fit.rows, dev.rows, trainings.reward, silent, checkpoint, identity))
    every = chain.from_iterable(part.rows.encoded for part in parts.train())
    rows = list(compress(every, held))
    scores = predict(loaded, rows, batch_tokens=trainings.config.batch_tokens)
    if distributed.is_first():
        _store(stored, scores)
        shutil.rmtree(checkpoint, ignore_errors=True)
    trainings.progress.tell("fold", name=name, prompts=len({*fit.prompts(), *dev.prompts()}))
    return scores


def _store(place: Path, scores: Floats) -> None:
    place.parent.mkdir(exist_ok=True)
    # Renamed when it is whole: a kill must not leave half a file that a restart would take for the fold's.
    unfinished = place.with_suffix(".unfinished")
    with unfinished.open("wb") as file:
        np.save(file, scores)
    unfinished.replace(place)
