"""Three real data sets with the features of the default backbone, and what the gate and the learning curve say of them.

Models are ridges, fitted as a training run fits them.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import django
import numpy as np

from benchmarks.measuring import DATA
from rewards.learning.answers import TuningRows, answers_of
from rewards.learning.baseline import Baseline, cross_fitted_scores, examples
from rewards.learning.config import AUTO, RIDGE_ALPHAS, TrainConfig
from rewards.learning.curve import CurveRows, learning_curve
from rewards.learning.data import Floats, Response, Task, Turn, items_of
from rewards.learning.metrics import CONSTANT
from rewards.learning.ridge import Ridge, fit_ridge
from rewards.learning.splits import Part

# The rules of promotion stand beside Django's models.
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "annotator.settings")
django.setup()
from rewards.promotion import promotion  # noqa: E402

RETRAININGS = 20
WORSE = 0.017
"""By how much the squared error of a worse candidate is larger than the champion's."""
Random = np.random.Generator
Predictions = dict[str, promotion.Predicted]


@dataclass(frozen=True)
class DataSet:
    """Labelled tasks of which each prompt is one, with the features [rows, d] of each depth; rows are responses.

    `blocks` are the columns of each block of features. `drawn` prompts make one first model; `doubled` prompts are
    doubled for the curve.
    """

    name: str
    tasks: list[Task]
    attributes: tuple[str, ...]
    drawn: int
    doubled: int
    features: list[Floats]
    blocks: Sequence[int]

    @property
    def weights(self) -> dict[str, float]:
        return dict.fromkeys(self.attributes, 1.0)

    def prompts(self) -> list[str]:
        return sorted({task.prompt_hash for task in self.tasks})

    def some(self, prompts: Sequence[str]) -> DataSet:
        """Returns the tasks of some prompts, with the features of their rows."""
        chosen = set(prompts)
        tasks = [task for task in self.tasks if task.prompt_hash in chosen]
        rows = [task.prompt_hash in chosen for task in self.tasks for _ in task.responses]
        return replace(self, tasks=tasks, features=[depth[np.array(rows)] for depth in self.features])

    def divided(self, random: Random, *sizes: int) -> list[DataSet]:
        """Returns parts of so many prompts each, drawn at random, and the rest."""
        prompts = random.permutation(self.prompts()).tolist()
        bounds = np.cumsum([0, *sizes]).tolist()
        return [self.some(prompts[low:high]) for low, high in zip(bounds, [*bounds[1:], None], strict=True)]

    def shuffled(self, random: Random) -> DataSet:
        """Returns the tasks with the labels of other responses, or with preferences by the toss of a coin."""
        labels = [answer.scores for task in self.tasks for answer in task.responses]
        order = iter(random.permutation(len(labels)).tolist())
        tasks = []
        for task in self.tasks:
            responses = tuple(replace(answer, scores=labels[next(order)]) for answer in task.responses)
            preference = task.preference and int(random.choice([-1, 1]))
            tasks.append(replace(task, responses=responses, preference=preference))
        return replace(self, tasks=tasks)


# The data --------------------------------------------------------------------------------------------------


def judged() -> tuple[list[Task], tuple[str, ...]]:
    """Responses with three ratings of 1 to 5, which are three attributes here."""
    attributes, tasks = ("first", "second", "third"), []
    for row in _rows("llm_judge_ratings.jsonl"):
        scores = {key: float(score - 1) for key, score in zip(attributes, row["scores"], strict=True)}
        answer = Response(str(row["id"]), row["response"], scores, {}, [])
        tasks.append(Task(str(row["id"]), hashed(row["prompt"]), (Turn("user", row["prompt"]),), (answer,), None))
    return tasks, attributes


def ranked() -> tuple[list[Task], tuple[str, ...]]:
    """Conversations of which people ranked the answers, as a rating of 4 for the best; a tree counts as one prompt."""
    tasks = []
    for row in _rows("oasst_tasks.jsonl"):
        known = [answer for answer in row["responses"] if answer["rank"] is not None]
        answers = tuple(
            Response(answer["id"], answer["text"], {"quality": float(max(0, 4 - answer["rank"]))}, {}, [])
            for answer in known
        )
        turns = tuple(Turn(turn["role"], turn["content"]) for turn in row["messages"])
        if answers:
            tasks.append(Task(row["id"], hashed(row["tree"]), turns, answers, None))
    return tasks, ("quality",)


def preferred(most: int) -> tuple[list[Task], tuple[str, ...]]:
    """Pairs of answers, the better one first and second by turns."""
    from benchmarks.training import read_hh

    pairs, tasks = read_hh(DATA / "hh_pairs_train.jsonl.gz"), []
    for number in np.random.default_rng(0).permutation(len(pairs))[:most].tolist():
        names = zip("ab", pairs[number], strict=True)
        both = [Response(f"{number}{side}", item.response, {}, {}, []) for side, item in names]
        conversation = pairs[number][0].conversation
        prompt = hashed(json.dumps([turn.content for turn in conversation]))
        order = both if number % 2 else both[::-1]
        tasks.append(Task(str(number), prompt, conversation, tuple(order), -1 if number % 2 else 1))
    return tasks, ("helpfulness",)


def _rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / name).read_text(encoding="utf-8").splitlines()]


def hashed(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def data_sets(*, quick: bool, folder: Path | None) -> Iterator[DataSet]:
    """Yields the sets with the frozen features of every depth, out of the folder where it has them."""
    pairs, drawn, doubled = (700, 600, 200) if quick else (1_500, 1_300, 400)
    for name, (tasks, attributes), of_first, of_curve in (
        ("ratings by a judge", judged(), 280, 90),
        ("ranks of answers", ranked(), 90, 40),
        ("preferences", preferred(pairs), drawn, doubled),
    ):
        features, blocks = read_features(name.replace(" ", "-"), tasks, folder)
        yield DataSet(name, tasks, attributes, of_first, of_curve, features, blocks)


def read_features(name: str, tasks: list[Task], folder: Path | None) -> tuple[list[Floats], list[int]]:
    from rewards.learning.backbones import find_backbone
    from rewards.learning.baseline import depths, read
    from rewards.learning.inference import frozen_features
    from rewards.learning.model_loading import load_backbone
    from rewards.learning.precision import with_precision

    ids = hashed("".join(item.id for item in items_of(tasks)))[:12]
    kept = folder / f"{name}-{ids}.npz" if folder else None
    if kept and kept.is_file():
        with np.load(kept) as stored:
            return [stored[key] for key in sorted(set(stored.files) - {"blocks"})], stored["blocks"].tolist()
    source = find_backbone(TrainConfig(snapshot="").backbone, source="")
    # In the precision that a training run would choose on this machine.
    loaded = with_precision(load_backbone(source, attributes=("a",), max_length=256), AUTO)
    encoded, features = [loaded.frame.encode(item) for item in items_of(tasks)], []
    for layers in depths(loaded.network, 0):
        read(loaded.network, layers)
        features.append(frozen_features(loaded, encoded, batch_tokens=8192))
    if kept and folder:
        folder.mkdir(parents=True, exist_ok=True)
        depth = {f"depth{number}": values for number, values in enumerate(features)}
        np.savez(kept, blocks=np.array(loaded.network.blocks), **depth)  # type: ignore[arg-type]
    return features, list(loaded.network.blocks)


# Models ----------------------------------------------------------------------------------------------------


def baseline_of(data: DataSet) -> Baseline:
    """The ridge of a training run, at the depth with the lower left-out error."""
    answers = answers_of(data.tasks, data.attributes, reward=data.weights, rounded=False, by_agreement=False)
    parts, reward = [Part(data.tasks, TuningRows([], answers, []))], tuple(data.weights.values())
    tried: list[tuple[Floats, Ridge, int]] = []
    for features in data.features:
        rows = examples(features, parts, reward)
        ridge = fit_ridge(rows.features, rows.targets, rows.prompts, alphas=RIDGE_ALPHAS, blocks=data.blocks)
        tried.append((features, replace(ridge, bias=rows.bias(ridge.weight, ridge.bias)), len(tried)))
    features, ridge, depth = min(tried, key=lambda trial: float(np.mean(np.square(trial[1].held_out_rmse))))
    return Baseline(features, parts, ridge, data.blocks, reward, 0, depth, data.features)


def predicted(data: DataSet, scores: Floats) -> Predictions:
    """Scores [rows, attributes] by response id."""
    ids = [answer.id for task in data.tasks for answer in task.responses]
    return {
        name: promotion.Predicted(dict(zip(data.attributes, row, strict=True)), float(sum(row)))
        for name, row in zip(ids, scores.tolist(), strict=True)
    }


def applied(model: Baseline, data: DataSet) -> Floats:
    """[rows, attributes]: what a model predicts of the data."""
    ridge = model.ridge
    return np.asarray(data.features[model.layers] @ ridge.weight.T + ridge.bias, dtype=np.float64)


def error_of(model: Baseline, data: DataSet) -> float:
    """The RMSE on the rated answers, or the share of wrong pairs."""
    measured = promotion.held_out(data.tasks, predicted(data, applied(model, data)), weights=data.weights)
    if measured.labels:
        return float(np.sqrt(sum(measured.squared_errors.values()) / sum(measured.labels.values())))
    return sum(measured.wrong.values()) / measured.pairs


# First models ----------------------------------------------------------------------------------------------


def first_model(data: DataSet, random: Random) -> promotion.Verdict | None:
    """The gate's verdict about the first model of a project with these labels."""
    held, train = data.divided(random, round(0.1 * len(data.prompts())))
    baseline = baseline_of(train)
    crossed = cross_fitted_scores(replace(baseline, seed=int(random.integers(1 << 30))), RIDGE_ALPHAS)
    if crossed is None:
        return None
    scores, means = crossed
    labels = baseline.labels()
    middle = np.nanmean(labels, axis=0) if np.isfinite(labels).any() else np.zeros(len(data.attributes))
    theirs, tasks = applied(baseline, held), [*held.tasks, *train.tasks]
    constant = [name for i, name in enumerate(data.attributes) if theirs[:, i].std() < CONSTANT]
    ours = predicted(train, scores) | predicted(held, theirs)
    mean = predicted(train, means) | predicted(held, np.broadcast_to(middle, theirs.shape))
    return promotion.decide(
        promotion.held_out(tasks, ours, weights=data.weights, metrics={"constant": constant}),
        None,
        promotion.held_out(tasks, mean, weights=data.weights),
        longer=promotion.by_length(tasks, weights=data.weights),
    )


def shuffled_promoted(data: DataSet, random: Random) -> bool:
    verdict = first_model(data.divided(random, data.drawn)[0].shuffled(random), random)
    return verdict is not None and verdict.promote


def true_promoted(data: DataSet, random: Random) -> bool:
    verdict = first_model(data.divided(random, data.drawn)[0], random)
    return verdict is not None and verdict.promote


def learns(data: DataSet) -> bool:
    """Whether the ridge of all prompts is better than the mean and than *longer wins*, as far as anybody can tell.

    Where it is not, refusing its models is right, and the share of promoted ones says nothing about the gate.
    """
    verdict = first_model(data, np.random.default_rng(0))
    return verdict is not None and verdict.gain > 0 and (verdict.over_length is None or verdict.over_length > 0)


def curve_covers(data: DataSet, random: Random) -> bool:
    """Whether the curve's interval for twice the labels holds what twice the labels bring."""
    now, later, rest = data.divided(random, data.doubled, data.doubled)
    baseline = baseline_of(now)
    labels, pairs = baseline.labels(), baseline.pairs()
    count = int(np.isfinite(labels).any(axis=1).sum()) or len(pairs)
    rows, seed = (
        CurveRows(now.features, labels, baseline.prompts(), baseline.reward, pairs),
        int(random.integers(1 << 30)),
    )
    outcome = learning_curve(rows, alphas=RIDGE_ALPHAS, blocks=data.blocks, seed=seed, more=count)
    if outcome is None:
        raise SystemExit(f"{data.name}: too few prompts for a curve")
    both = data.some([*now.prompts(), *later.prompts()])
    gain = error_of(baseline, rest) - error_of(baseline_of(both), rest)
    outlook: dict[str, float] = outcome["outlook"]
    return bool(outlook["low"] <= gain <= outlook["high"])


# Later models ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rivals:
    """What two models that have learnt from different prompts predict of tasks that neither knows."""

    data: DataSet
    first: Predictions
    second: Predictions

    def replaced(self, prompts: int, random: Random, *, worse: bool = False, looks: int = 1) -> bool:
        """Whether one of so many candidates in a row replaces the champion, on the same held-out prompts.

        They are equal by construction, as a coin says per prompt which is which; a worse candidate gets noise.
        """
        tasks = self.data.some(random.permutation(self.data.prompts())[:prompts].tolist()).tasks
        for look in range(1, looks + 1):
            champion: Predictions = {}
            candidate: Predictions = {}
            sides = {task.prompt_hash: bool(random.integers(2)) for task in self.data.tasks}
            for task in self.data.tasks:
                one, other = (self.second, self.first) if sides[task.prompt_hash] else (self.first, self.second)
                champion |= {answer.id: one[answer.id] for answer in task.responses}
                candidate |= {answer.id: other[answer.id] for answer in task.responses}
            candidate = self.spoilt(candidate, random) if worse else candidate
            known, new = (
                promotion.held_out(tasks, values, weights=self.data.weights) for values in (champion, candidate)
            )
            if promotion.decide(new, known, known, look=look).promote:
                return True
        return False

    def spoilt(self, predictions: Predictions, random: Random) -> Predictions:
        """The same predictions with noise, which makes their squared error larger by WORSE."""
        answers = [answer for task in self.data.tasks for answer in task.responses]
        errors = [
            (predictions[one.id].scores[key] - label) ** 2 for one in answers for key, label in one.scores.items()
        ]
        # Of compared answers only the order counts: so much noise turns a few pairs round.
        pairwise = np.sqrt(10 * WORSE) * np.std([value.reward for value in predictions.values()])
        spread = float(np.sqrt(WORSE * np.mean(errors)) if errors else pairwise)
        noisy = {}
        for name, value in predictions.items():
            scores = {key: score + spread * random.normal() for key, score in value.scores.items()}
            noisy[name] = promotion.Predicted(scores, sum(scores.values()))
        return noisy


def rivals(data: DataSet, random: Random) -> Rivals:
    third = len(data.prompts()) // 3
    *both, rest = data.divided(random, third, third)
    first, second = (predicted(rest, applied(baseline_of(part), rest)) for part in both)
    return Rivals(rest, first, second)
