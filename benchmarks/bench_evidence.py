"""Measures whether the gate promotes what has learnt and nothing else, and whether the learning curve keeps its word.

`python -m benchmarks.bench_evidence [--quick] [--seed N] [--features FOLDER]`. Three real data sets of SHARED_DATA
(../shared/data): ratings by a judge, ranks of assistants' answers, preferences between two answers. The features come
from the default backbone; FOLDER keeps them for the next time. Everything after them is drawn again and again:

- first models, on shuffled and on true labels, with the evidence that a training run writes;
- later models that are exactly as good as the champion, or worse, at 5 to 200 prompts, once and twenty times in a row;
- learning curves, whose interval for doubling the labels is compared with what doubling them brings;
- without --quick, labelling in the order of the ensemble's uncertainty beside labelling in random order.

The last line is JSON: the worst share over the data sets and sizes where a target is an upper one, the mean share where
it is a lower one. Models of data from which all prompts together teach nothing beyond length are not asked to pass.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.real_data import DATA
from benchmarks.training.pairs import read_hh
from rewards import promotion
from rewards.learning.backbones import find_backbone
from rewards.learning.baseline import Baseline, cross_fitted_scores, ensemble, examples
from rewards.learning.config import RIDGE_ALPHAS, TrainConfig
from rewards.learning.curve import Rows as CurveRows
from rewards.learning.curve import learning_curve
from rewards.learning.data import Floats, Response, Task, Turn, items_of
from rewards.learning.depth import depths, read
from rewards.learning.finetune import Rows
from rewards.learning.inference import frozen_features
from rewards.learning.metrics import CONSTANT
from rewards.learning.model import load_backbone
from rewards.learning.objectives import answers_of
from rewards.learning.paired_gain import t_quantile
from rewards.learning.ridge import Ridge, fit_ridge
from rewards.learning.splits import Part

HELD_OUT = (5, 10, 20, 50, 100, 200)
RETRAININGS = 20
ORDERED_AT_ONCE, MOST_ORDERED = 30, 300
WORSE = 0.017
"""By how much the squared error of a worse candidate is larger than the champion's."""
Random = np.random.Generator
Predictions = dict[str, promotion.Predicted]


@dataclass(frozen=True)
class DataSet:
    """Labelled tasks of which each prompt is one, with the features [rows, d] of each depth; rows are responses.

    `blocks` are the columns of each block of features, `places` the rows of each task. `drawn` prompts make one first
    model; `doubled` prompts are doubled for the curve.
    """

    name: str
    tasks: list[Task]
    attributes: tuple[str, ...]
    features: list[Floats]
    blocks: Sequence[int]
    places: list[list[int]]
    drawn: int
    doubled: int

    @property
    def weights(self) -> dict[str, float]:
        return dict.fromkeys(self.attributes, 1.0)

    def prompts(self) -> list[str]:
        return sorted({task.prompt_hash for task in self.tasks})


# The data --------------------------------------------------------------------------------------------------


def response(name: str, text: str, scores: Mapping[str, float]) -> Response:
    return Response(name, text, scores, {}, [])


def judged() -> tuple[list[Task], tuple[str, ...]]:
    """Responses with three ratings of 1 to 5, which are three attributes here."""
    rows = [json.loads(line) for line in (DATA / "llm_judge_ratings.jsonl").read_text(encoding="utf-8").splitlines()]
    attributes = ("first", "second", "third")
    tasks = []
    for row in rows:
        scores = {key: float(score - 1) for key, score in zip(attributes, row["scores"], strict=True)}
        answer = response(str(row["id"]), row["response"], scores)
        tasks.append(Task(str(row["id"]), hashed(row["prompt"]), (Turn("user", row["prompt"]),), (answer,), None))
    return tasks, attributes


def ranked() -> tuple[list[Task], tuple[str, ...]]:
    """Conversations of which people ranked the answers, as a rating of 4 for the best; a tree counts as one prompt."""
    rows = [json.loads(line) for line in (DATA / "oasst_tasks.jsonl").read_text(encoding="utf-8").splitlines()]
    tasks = []
    for row in rows:
        answers = tuple(
            response(answer["id"], answer["text"], {"quality": float(max(0, 4 - answer["rank"]))})
            for answer in row["responses"]
            if answer["rank"] is not None
        )
        turns = tuple(Turn(turn["role"], turn["content"]) for turn in row["messages"])
        if answers:
            tasks.append(Task(row["id"], hashed(row["tree"]), turns, answers, None))
    return tasks, ("quality",)


def preferred(most: int) -> tuple[list[Task], tuple[str, ...]]:
    """Pairs of answers, the better one first and second by turns."""
    pairs = read_hh(DATA / "hh_pairs_train.jsonl.gz")
    tasks = []
    for number in np.random.default_rng(0).permutation(len(pairs))[:most].tolist():
        both = [response(f"{number}{side}", item.response, {}) for side, item in zip("ab", pairs[number], strict=True)]
        conversation = pairs[number][0].conversation
        prompt = hashed(json.dumps([turn.content for turn in conversation]))
        order = both if number % 2 else both[::-1]
        tasks.append(Task(str(number), prompt, conversation, tuple(order), -1 if number % 2 else 1))
    return tasks, ("helpfulness",)


def hashed(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def read_features(name: str, tasks: list[Task], folder: Path | None) -> tuple[list[Floats], list[int]]:
    """Returns the frozen features of every depth, out of `folder` where it has them, and their blocks."""
    ids = hashed("".join(item.id for item in items_of(tasks)))[:12]
    kept = folder / f"{name}-{ids}.npz" if folder else None
    if kept and kept.is_file():
        with np.load(kept) as stored:
            return [stored[key] for key in sorted(set(stored.files) - {"blocks"})], stored["blocks"].tolist()
    source = find_backbone(TrainConfig(snapshot="").backbone, source="")
    loaded = load_backbone(source, attributes=("a",), max_length=256)
    encoded = [loaded.frame.encode(item) for item in items_of(tasks)]
    features = []
    for layers in depths(loaded.network, 0):
        read(loaded.network, layers)
        features.append(frozen_features(loaded, encoded, batch_tokens=8192))
    if kept and folder:
        folder.mkdir(parents=True, exist_ok=True)
        depth = {f"depth{number}": values for number, values in enumerate(features)}
        np.savez(kept, blocks=np.array(loaded.network.blocks), **depth)  # type: ignore[arg-type]
    return features, list(loaded.network.blocks)


def data_sets(*, quick: bool, folder: Path | None) -> list[DataSet]:
    pairs = 700 if quick else 1_500
    plans: list[tuple[str, tuple[list[Task], tuple[str, ...]], int, int]] = [
        ("ratings by a judge", judged(), 280, 90),
        ("ranks of answers", ranked(), 90, 40),
        ("preferences", preferred(pairs), 600 if quick else 1_300, 200 if quick else 400),
    ]
    sets = []
    for name, (tasks, attributes), drawn, doubled in plans:
        began = time.monotonic()
        features, blocks = read_features(name.replace(" ", "-"), tasks, folder)
        rows = iter(range(len(features[0])))
        places = [[next(rows) for _ in task.responses] for task in tasks]
        sets.append(DataSet(name, tasks, attributes, features, blocks, places, drawn, doubled))
        tell(name, prompts=len(sets[-1].prompts()), responses=len(features[0]), seconds=time.monotonic() - began)
    return sets


# Models ----------------------------------------------------------------------------------------------------


def some_of(data: DataSet, prompts: Sequence[str]) -> DataSet:
    """The tasks of some prompts, with the features of their rows."""
    chosen = set(prompts)
    numbers = [number for number, task in enumerate(data.tasks) if task.prompt_hash in chosen]
    rows = [row for number in numbers for row in data.places[number]]
    counter = iter(range(len(rows)))
    places = [[next(counter) for _ in data.places[number]] for number in numbers]
    tasks = [data.tasks[number] for number in numbers]
    return replace(data, tasks=tasks, features=[depth[rows] for depth in data.features], places=places)


def shuffled(data: DataSet, random: Random) -> DataSet:
    """The same tasks with the labels of other responses, or with preferences by the toss of a coin."""
    labels = [answer.scores for task in data.tasks for answer in task.responses]
    order = iter(random.permutation(len(labels)).tolist())
    tasks = [
        replace(
            task,
            responses=tuple(replace(answer, scores=labels[next(order)]) for answer in task.responses),
            preference=task.preference and int(random.choice([-1, 1])),
        )
        for task in data.tasks
    ]
    return replace(data, tasks=tasks)


def baseline_of(data: DataSet) -> Baseline:
    """The ridge of a training run, at the depth with the lower left-out error."""
    answers = answers_of(data.tasks, data.attributes, reward=data.weights, rounded=False, by_agreement=False)
    parts, reward = [Part(data.tasks, Rows([], answers, []))], tuple(data.weights.values())
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


def applied(ridge: Ridge, depth: int, data: DataSet) -> Floats:
    """[rows, attributes]: what a ridge predicts that reads the features of this depth."""
    return np.asarray(data.features[depth] @ ridge.weight.T + ridge.bias, dtype=np.float64)


def divided(data: DataSet, random: Random, *sizes: int) -> list[DataSet]:
    """Parts of so many prompts each, drawn at random, and the rest."""
    prompts = random.permutation(data.prompts()).tolist()
    bounds = np.cumsum([0, *sizes]).tolist()
    return [some_of(data, prompts[low:high]) for low, high in zip(bounds, [*bounds[1:], None], strict=True)]


# First models ----------------------------------------------------------------------------------------------


def first_model(data: DataSet, random: Random) -> promotion.Verdict | None:
    """The gate's verdict about the first model of a project with these labels."""
    held, train = divided(data, random, round(0.1 * len(data.prompts())))
    baseline = baseline_of(train)
    crossed = cross_fitted_scores(replace(baseline, seed=int(random.integers(1 << 30))), RIDGE_ALPHAS)
    if crossed is None:
        return None
    scores, means = crossed
    labels = baseline.labels()
    middle = np.nanmean(labels, axis=0) if np.isfinite(labels).any() else np.zeros(len(data.attributes))
    theirs = applied(baseline.ridge, baseline.layers, held)
    tasks = [*held.tasks, *train.tasks]
    constant = [name for i, name in enumerate(data.attributes) if theirs[:, i].std() < CONSTANT]
    return promotion.decide(
        promotion.held_out(
            tasks,
            predicted(train, scores) | predicted(held, theirs),
            weights=data.weights,
            metrics={"constant": constant},
        ),
        None,
        promotion.held_out(
            tasks,
            predicted(train, means) | predicted(held, np.broadcast_to(middle, theirs.shape)),
            weights=data.weights,
        ),
        longer=promotion.by_length(tasks, weights=data.weights),
    )


def is_promoted(verdict: promotion.Verdict | None) -> bool:
    return verdict is not None and verdict.promote


def shuffled_promoted(data: DataSet, random: Random) -> bool:
    return is_promoted(first_model(shuffled(divided(data, random, data.drawn)[0], random), random))


def true_promoted(data: DataSet, random: Random) -> bool:
    return is_promoted(first_model(divided(data, random, data.drawn)[0], random))


def learns(data: DataSet) -> bool:
    """Whether the ridge of all prompts is better than the mean and than *longer wins*, as far as anybody can tell.

    Where it is not, refusing its models is right, and the share of promoted ones says nothing about the gate.
    """
    verdict = first_model(data, np.random.default_rng(0))
    assert verdict is not None
    better = verdict.gain > 0 and (verdict.over_length is None or verdict.over_length > 0)
    tell("learns", data=data.name, gain=verdict.gain, over_length=verdict.over_length, learns=better)
    return better


# Later models ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rivals:
    """What two models that have learnt from different prompts predict of tasks that neither knows."""

    data: DataSet
    tasks: list[Task]
    first: Predictions
    second: Predictions

    def mixed(self, random: Random) -> tuple[Predictions, Predictions]:
        """A champion and a candidate that are equal by construction: a coin says per prompt which is which."""
        champion, candidate = {}, {}
        sides = {task.prompt_hash: bool(random.integers(2)) for task in self.tasks}
        for task in self.tasks:
            one, other = (self.second, self.first) if sides[task.prompt_hash] else (self.first, self.second)
            for answer in task.responses:
                champion[answer.id], candidate[answer.id] = one[answer.id], other[answer.id]
        return champion, candidate


def rivals(data: DataSet, random: Random) -> Rivals:
    third = len(data.prompts()) // 3
    one, other, rest = divided(data, random, third, third)
    both = [baseline_of(part) for part in (one, other)]
    first, second = (predicted(rest, applied(model.ridge, model.layers, rest)) for model in both)
    return Rivals(data, rest.tasks, first, second)


def replaces(
    pair: Rivals, champion: Predictions, candidate: Predictions, tasks: Sequence[Task], *, look: int = 1
) -> bool:
    known, new = (promotion.held_out(tasks, values, weights=pair.data.weights) for values in (champion, candidate))
    return promotion.decide(new, known, known, look=look).promote


def some_tasks(pair: Rivals, prompts: int, random: Random) -> list[Task]:
    chosen = set(random.permutation(sorted({task.prompt_hash for task in pair.tasks}))[:prompts].tolist())
    return [task for task in pair.tasks if task.prompt_hash in chosen]


def equal_replaces(pair: Rivals, prompts: int, random: Random) -> bool:
    champion, candidate = pair.mixed(random)
    return replaces(pair, champion, candidate, some_tasks(pair, prompts, random))


def worse_replaces(pair: Rivals, prompts: int, random: Random) -> bool:
    champion, candidate = pair.mixed(random)
    worse = spoilt(pair, candidate, random)
    return replaces(pair, champion, worse, some_tasks(pair, prompts, random))


def spoilt(pair: Rivals, predictions: Predictions, random: Random) -> Predictions:
    """The same predictions with noise, which makes their squared error larger by WORSE."""
    answers = [answer for task in pair.tasks for answer in task.responses]
    errors = [
        (predictions[answer.id].scores[key] - label) ** 2 for answer in answers for key, label in answer.scores.items()
    ]
    if errors:
        spread = float(np.sqrt(WORSE * np.mean(errors)))
    else:
        # Of compared answers only the order counts: so much noise turns a few pairs round.
        spread = float(np.sqrt(10 * WORSE) * np.std([value.reward for value in predictions.values()]))
    noisy = {}
    for name, value in predictions.items():
        scores = {key: score + spread * random.normal() for key, score in value.scores.items()}
        noisy[name] = promotion.Predicted(scores, sum(scores.values()))
    return noisy


def any_of_20_replaces(pair: Rivals, prompts: int, random: Random) -> bool:
    """Whether one of twenty equal candidates in a row replaces the champion, on the same held-out prompts."""
    tasks = some_tasks(pair, prompts, random)
    for look in range(1, RETRAININGS + 1):
        champion, candidate = pair.mixed(random)
        if replaces(pair, champion, candidate, tasks, look=look):
            return True
    return False


# The curve -------------------------------------------------------------------------------------------------


def curve_covers(data: DataSet, random: Random) -> bool:
    """Whether the curve's interval for twice the labels holds what twice the labels bring."""
    now, later, rest = divided(data, random, data.doubled, data.doubled)
    baseline = baseline_of(now)
    labels, pairs = baseline.labels(), baseline.pairs()
    count = int(np.isfinite(labels).any(axis=1).sum()) or len(pairs)
    rows = CurveRows(now.features, labels, baseline.prompts(), baseline.reward, pairs)
    outcome = learning_curve(
        rows, alphas=RIDGE_ALPHAS, blocks=data.blocks, seed=int(random.integers(1 << 30)), more=count
    )
    if outcome is None:
        raise SystemExit(f"{data.name}: too few prompts for a curve")
    both = some_of(data, [*now.prompts(), *later.prompts()])
    before, after = (error_of(model, rest) for model in (baseline, baseline_of(both)))
    outlook: dict[str, float] = outcome["outlook"]
    return bool(outlook["low"] <= before - after <= outlook["high"])


def error_of(model: Baseline, data: DataSet) -> float:
    """The RMSE on the rated answers, or the share of wrong pairs."""
    measured = promotion.held_out(
        data.tasks, predicted(data, applied(model.ridge, model.layers, data)), weights=data.weights
    )
    if measured.labels:
        return float(np.sqrt(sum(measured.squared_errors.values()) / sum(measured.labels.values())))
    return sum(measured.wrong.values()) / measured.pairs


# The order of labelling -----------------------------------------------------------------------------------


def ordering_gain(data: DataSet, random: Random) -> float:
    """By how much the error is lower, on the way to all labels, where the least certain prompts are labelled first.

    Both orders begin with the same prompts and end with all; in between the gain is the mean over the steps.
    """
    third = len(data.prompts()) // 3
    rest, pool = divided(data, random, third)
    prompts = random.permutation(pool.prompts()).tolist()[:MOST_ORDERED]
    by_chance, by_doubt = (errors_on_the_way(pool, rest, prompts, uncertain=uncertain) for uncertain in (False, True))
    return float(np.mean(by_chance[1:-1]) - np.mean(by_doubt[1:-1]))


def errors_on_the_way(pool: DataSet, rest: DataSet, prompts: Sequence[str], *, uncertain: bool) -> list[float]:
    """The errors on the rest after each step of ORDERED_AT_ONCE prompts, from as many to all."""
    labelled, waiting, errors = list(prompts[:ORDERED_AT_ONCE]), list(prompts[ORDERED_AT_ONCE:]), []
    while True:
        model = baseline_of(some_of(pool, labelled))
        errors.append(error_of(model, rest))
        if not waiting:
            return errors
        if uncertain:
            doubts = doubts_of(model, some_of(pool, waiting))
            waiting.sort(key=lambda prompt: -doubts[prompt])
        labelled += waiting[:ORDERED_AT_ONCE]
        del waiting[:ORDERED_AT_ONCE]


def doubts_of(model: Baseline, data: DataSet) -> dict[str, float]:
    """The ensemble's uncertainty about each prompt, as the mean over its responses."""
    deviations = ensemble(model, model.features).deviation(data.features[model.layers], model.reward)
    by_prompt: dict[str, list[float]] = {}
    for task, rows in zip(data.tasks, data.places, strict=True):
        by_prompt.setdefault(task.prompt_hash, []).extend(deviations[rows].tolist())
    return {prompt: float(np.mean(values)) for prompt, values in by_prompt.items()}


def tell_ordering(sets: Sequence[DataSet], tries: int, seed: int) -> None:
    for number, data in enumerate(sets):
        began = time.monotonic()
        gains = np.array([ordering_gain(data, np.random.default_rng([seed, number, n])) for n in range(tries)])
        reach = t_quantile(0.975, tries - 1) * gains.std(ddof=1) / np.sqrt(tries)
        mean, low, high = (float(value) for value in (gains.mean(), gains.mean() - reach, gains.mean() + reach))
        seconds = time.monotonic() - began
        tell("ordering by uncertainty", data=data.name, gain=mean, low=low, high=high, tries=tries, seconds=seconds)


# All of it -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Share:
    """How often something happened in so many tries."""

    hits: int
    tries: int

    @property
    def value(self) -> float:
        return self.hits / self.tries

    def interval(self) -> tuple[float, float]:
        """The bounds of Wilson's 95 % interval."""
        z, n, p = 1.96, self.tries, self.value
        middle, reach = p + z * z / (2 * n), z * np.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
        return float((middle - reach) / (1 + z * z / n)), float((middle + reach) / (1 + z * z / n))


def share(tries: int, once: Callable[[Random], bool], *seed: int) -> Share:
    return Share(sum(once(np.random.default_rng([*seed, number])) for number in range(tries)), tries)


def tell(what: str, **values: Any) -> None:
    rounded = {key: round(value, 4) if isinstance(value, float) else value for key, value in values.items()}
    print(json.dumps({"what": what, **rounded}), flush=True)


def tell_share(what: str, data: DataSet, measured: Share, began: float, **values: Any) -> None:
    low, high = measured.interval()
    numbers = {"share": measured.value, "low": low, "high": high, "tries": measured.tries}
    tell(what, data=data.name, **values, **numbers, seconds=time.monotonic() - began)


def measured_once_per_set(
    what: str, once: Callable[[DataSet, Random], bool], sets: Sequence[DataSet], tries: int, seed: int
) -> list[Share]:
    shares = []
    for number, data in enumerate(sets):
        began = time.monotonic()

        def drawn(random: Random, data: DataSet = data) -> bool:
            return once(data, random)

        shares.append(share(tries, drawn, seed, number))
        tell_share(what, data, shares[-1], began)
    return shares


def measured_by_size(
    what: str,
    once: Callable[[Rivals, int, Random], bool],
    pairs: Sequence[Sequence[Rivals]],
    sizes: Sequence[int],
    tries: int,
    seed: int,
) -> list[Share]:
    """Each try takes one of the pairs of models that were fitted before: fitting them anew would take the most time."""
    shares = []
    for number, fitted in enumerate(pairs):
        most = min(len({task.prompt_hash for task in pair.tasks}) for pair in fitted)
        for size in sizes:
            if size > most:
                continue
            began = time.monotonic()

            def drawn(random: Random, size: int = size, fitted: Sequence[Rivals] = fitted) -> bool:
                return once(fitted[int(random.integers(len(fitted)))], size, random)

            shares.append(share(tries, drawn, seed, number, size))
            tell_share(what, fitted[0].data, shares[-1], began, prompts=size)
    return shares


def worst(shares: Sequence[Share]) -> float:
    return max(measured.value for measured in shares)


def pooled(shares: Sequence[Share]) -> float:
    return float(np.mean([measured.value for measured in shares]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="fewer pairs and tries: under five minutes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--features", type=Path, help="a folder that keeps the features for the next time")
    options = parser.parse_args()
    if not DATA.is_dir():
        sys.exit(f"There is no folder {DATA}. Set SHARED_DATA to the folder with the data sets.")
    quick, seed = options.quick, options.seed
    sets = data_sets(quick=quick, folder=options.features)
    once = {
        "shuffled_promoted": (shuffled_promoted, 25 if quick else 200),
        "true_promoted": (true_promoted, 10 if quick else 50),
        "curve_covers": (curve_covers, 12 if quick else 100),
    }
    learnt = [learns(data) for data in sets]
    shares = {name: measured_once_per_set(name, try_it, sets, tries, seed) for name, (try_it, tries) in once.items()}
    fitted = 3 if quick else 10
    pairs = [[rivals(data, np.random.default_rng([seed, number])) for number in range(fitted)] for data in sets]
    sizes = (5, 20, 100) if quick else HELD_OUT
    tries = 300 if quick else 4_000
    shares["equal_replaces"] = measured_by_size("equal_replaces", equal_replaces, pairs, sizes, tries, seed)
    shares["worse_replaces"] = measured_by_size("worse_replaces", worse_replaces, pairs, sizes, tries, seed)
    tries = 200 if quick else 1_000
    shares["any_of_20_replaces"] = measured_by_size("any_of_20_replaces", any_of_20_replaces, pairs, sizes, tries, seed)
    shares["true_promoted"] = [one for one, did in zip(shares["true_promoted"], learnt, strict=True) if did]
    if not quick:
        tell_ordering(sets, 30, seed)
    upper = ("shuffled_promoted", "equal_replaces", "worse_replaces", "any_of_20_replaces")
    lower = ("true_promoted", "curve_covers")
    result = {name: round(worst(shares[name]), 4) for name in upper} | {
        name: round(pooled(shares[name]), 4) for name in lower
    }
    order = ("shuffled_promoted", "true_promoted", "equal_replaces", "worse_replaces", "any_of_20_replaces")
    print(json.dumps({name: result[name] for name in (*order, "curve_covers")}))


if __name__ == "__main__":
    main()
