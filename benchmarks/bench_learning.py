"""Measures whether anything is learnt: the default backbone on real pairs and ratings, beside what it has to beat.

`python -m benchmarks.bench_learning [pairs] [ratings]`. Pairs: Anthropic's HH pairs (HH_PAIRS, or
../shared/data/hh_pairs_train.jsonl.gz). Ratings: three scores of 1..5 for each response (JUDGE_RATINGS, or
../shared/data/llm_judge_ratings.jsonl). Both go through five divisions of the prompts, each of which is held out once.
Intervals are 95 % and resample prompts. PAIRS, THREADS and LAYERS save time; EPOCHS=0 fits ridges of ratings only.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

from benchmarks.real_data import DATA
from benchmarks.training.pairs import read_hh
from rewards.learning.data import Item, items_of, read_snapshot
from rewards.learning.inference import frozen_features
from rewards.learning.model_files import load_checkpoint
from rewards.learning.objectives import answers_of
from rewards.learning.ridge import scaling_of, solve_ridge
from rewards.learning.train import train

HH = Path(os.environ.get("HH_PAIRS", DATA / "hh_pairs_train.jsonl.gz"))
RATINGS = Path(os.environ.get("JUDGE_RATINGS", DATA / "llm_judge_ratings.jsonl"))
OPTIONS: dict[str, dict[str, Any]] = {
    "mean of the ratings": {},
    "rounded label": {"targets": "label"},
}
WEIGHTED = "mean, weighted by agreement"
THREADS = int(os.environ.get("THREADS", "0"))  # 0: torch decides
LAYERS = int(os.environ.get("LAYERS", "0"))  # 0: the ridge decides
EPOCHS = int(os.environ.get("EPOCHS", "3"))  # of the ratings
FOLDS = 5
Row = dict[str, Any]


def held_out(prompt: str, *, fold: int) -> bool:
    return int(hashlib.sha256(f"{prompt}".encode()).hexdigest(), 16) % FOLDS == fold


def write_snapshot(directory: Path, rows: Sequence[Row], attributes: Sequence[str], *, fold: int) -> Path:
    """Writes the rows as a snapshot whose validation part has the prompts of this fold; returns its directory."""
    directory.mkdir(parents=True)
    sides: dict[str, list[Row]] = {"train.jsonl": [], "validation.jsonl": []}
    for row in rows:
        sides["validation.jsonl" if held_out(row["prompt_hash"], fold=fold) else "train.jsonl"].append(row)
    for name, part in sides.items():
        (directory / name).write_text("".join(json.dumps(row) + "\n" for row in part), encoding="utf-8")
    files = {name: hashlib.sha256((directory / name).read_bytes()).hexdigest() for name in sides}
    manifest = {"format": 1, "content_hash": files["train.jsonl"], "attributes": list(attributes), "files": files}
    (directory / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    return directory


def trained(place: Path, snapshot: Path, **config: Any) -> dict[str, Any]:
    place.mkdir(parents=True)
    (place / "config.json").write_text(json.dumps({"snapshot": str(snapshot), **config}), encoding="utf-8")
    train(place)
    metrics: dict[str, Any] = json.loads((place / "metrics.json").read_text(encoding="utf-8"))
    return metrics


# Pairs -----------------------------------------------------------------------------------------------------


def pairs() -> None:
    """Prints how often each predictor prefers the better response, with every pair held out once."""
    items = some(read_hh(HH))
    rows = [pair_row(number, good, bad) for number, (good, bad) in enumerate(items)]
    hits: dict[str, list[float]] = {}
    prompts: list[str] = []
    for fold in range(FOLDS):
        began = time.monotonic()
        metrics, accuracies = divided(items, rows, fold)
        prompts += [row["prompt_hash"] for row in rows if held_out(row["prompt_hash"], fold=fold)]
        for label, values in accuracies.items():
            hits.setdefault(label, []).extend(values)
        means = {label: float(np.mean(values)) for label, values in accuracies.items()}
        curve = {str(point["step"]): point["validation_loss"] for point in metrics["training"]["curve"]}
        kinds = {"layers": metrics["baseline"]["layers"], "candidate": metrics["candidate"]["kind"]}
        tell(f"division {fold + 1}", seconds=round(time.monotonic() - began), **kinds, **means, **curve)
    for label, values in hits.items():
        tell(label, **interval(values, prompts), pairs=len(values))
    # Pair by pair: both predictors see the same pairs, so the difference is known better than either share.
    for baseline in ("TF-IDF, Bradley-Terry", "ridge on frozen MiniLM"):
        gains = np.array(hits["fine-tuned"]) - np.array(hits[baseline])
        tell(f"fine-tuned less {baseline}", **interval(gains, prompts))


def divided(
    items: Sequence[tuple[Item, Item]], rows: Sequence[Row], fold: int
) -> tuple[dict[str, Any], dict[str, list[float]]]:
    """Trains on the other folds. Returns the trainer's metrics, and by predictor a 1 for each pair that it gets right.

    A 0 stands for each that it gets wrong, in the order of the pairs held out.
    """
    with tempfile.TemporaryDirectory(prefix="rewardloop-bench-") as name:
        folder = Path(name)
        snapshot = write_snapshot(folder / "snapshot", rows, ["helpfulness"], fold=fold)
        metrics = trained(
            folder / "run", snapshot, stages=["bradley_terry"], epochs=1, learning_rate=3e-5,
            schedule="cosine", max_length=256, layers=LAYERS, threads=THREADS,
        )  # fmt: skip
        run = folder / "run"
        ridge, candidate = (rewards(run / f"{name}.jsonl") for name in ("baseline_predictions", "predictions"))
        tuned = rewards(run / "fine_tuned_predictions.jsonl") if metrics["fine_tuned"] else candidate
    out = [held_out(row["prompt_hash"], fold=fold) for row in rows]
    fit, test = ([pair for pair, is_out in zip(items, out, strict=True) if is_out is side] for side in (False, True))
    test_rows = [row for row, is_out in zip(rows, out, strict=True) if is_out]
    return metrics, {
        "longer wins": [float(longer(good, bad)) for good, bad in test],
        "TF-IDF, Bradley-Terry": tf_idf(fit, test),
        "ridge on frozen MiniLM": [right(row, ridge) for row in test_rows],
        "fine-tuned": [right(row, tuned) for row in test_rows],
        "the one that is kept": [right(row, candidate) for row in test_rows],
    }


def some(items: list[tuple[Item, Item]]) -> list[tuple[Item, Item]]:
    """Returns the first PAIRS of the items, by default all of them."""
    return items[: int(os.environ.get("PAIRS", len(items)))]


def prompt_of(item: Item) -> str:
    turns = [{"role": turn.role, "content": turn.content} for turn in item.conversation]
    return hashlib.sha256(json.dumps(turns).encode()).hexdigest()


def pair_row(number: int, good: Item, bad: Item) -> Row:
    """Returns a snapshot's row, in which the better response comes first or second by turns.

    Always first, it would let a model do well that knows nothing but the position.
    """
    turns = [{"role": turn.role, "content": turn.content} for turn in good.conversation]
    sides = [good, bad] if number % 2 else [bad, good]
    responses = [{"id": f"{number}:{item.id}", "text": item.response, "scores": {}} for item in sides]
    preference = -1 if number % 2 else 1
    return {
        "task": str(number), "prompt_hash": prompt_of(good), "conversation": turns, "responses": responses,
        "preference": preference,
    }  # fmt: skip


def right(row: Row, predictions: dict[str, float]) -> float:
    first, second = (predictions[response["id"]] for response in row["responses"])
    return float((second - first) * row["preference"] > 0)


def rewards(path: Path) -> dict[str, float]:
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return {row["id"]: row["reward"] for row in rows}


def longer(good: Item, bad: Item) -> bool:
    return len(good.response) > len(bad.response)


def tf_idf(fit: Sequence[tuple[Item, Item]], test: Sequence[tuple[Item, Item]]) -> list[float]:
    """Fits a Bradley-Terry model on the difference of the responses' words and word pairs, a usual first try.

    Returns a 1 for each pair of `test` that it gets right, and a 0 for each other. Cross-validation on the pairs to fit
    chooses the penalty.
    """
    words = TfidfVectorizer(ngram_range=(1, 2), min_df=3, sublinear_tf=True)
    words.fit([item.response for pair in fit for item in pair])

    def differences(pairs: Sequence[tuple[Item, Item]]) -> Any:
        good, bad = (words.transform([item.response for item in side]) for side in zip(*pairs, strict=True))
        return good - bad

    features = differences(fit)
    # Better less worse is always class 1, and a classifier wants two: every other difference is turned round.
    signs = np.where(np.arange(features.shape[0]) % 2, 1, -1)
    penalties = GridSearchCV(
        # No intercept: it would prefer whichever response is named first.
        LogisticRegression(fit_intercept=False, max_iter=2_000),
        {"C": [0.03, 0.1, 0.3, 1, 3, 10]},
        scoring="neg_log_loss",
    )
    model = penalties.fit(features.multiply(signs[:, None]).tocsr(), signs)
    return [float(value > 0) for value in model.decision_function(differences(test))]


# Ratings ---------------------------------------------------------------------------------------------------


def ratings() -> None:
    with RATINGS.open(encoding="utf-8") as lines:
        rows = rated_rows([json.loads(line) for line in lines])
    squared_errors: dict[str, list[list[float]]] = {}
    prompts: list[str] = []
    with tempfile.TemporaryDirectory(prefix="rewardloop-bench-") as name:
        for fold in range(FOLDS):
            snapshot = write_snapshot(Path(name) / f"snapshot{fold}", rows, ["score"], fold=fold)
            labels = {response["id"]: response["scores"]["score"] for row in rows for response in row["responses"]}
            test = [
                (row["prompt_hash"], response["id"])
                for row in rows
                if held_out(row["prompt_hash"], fold=fold)
                for response in row["responses"]
            ]
            prompts += [prompt for prompt, _ in test]
            for label, option in OPTIONS.items():
                run = Path(name) / f"{fold}-{label}"
                # Fine-tuned once; the options are compared by what they make of the ridge.
                tuned = {"ridge": "baseline_predictions"} | ({} if option else {"fine-tuned if better": "predictions"})
                epochs = 0 if option else EPOCHS
                metrics = trained(
                    run,
                    snapshot,
                    epochs=epochs,
                    patience=2,
                    learning_rate=3e-5,
                    max_length=256,
                    threads=THREADS,
                    **option,
                )
                for kind, file in tuned.items():
                    scores = predicted(run / f"{file}.jsonl")
                    errors = [(scores[response] - labels[response]) ** 2 for _, response in test]
                    squared_errors.setdefault(f"{kind}, {label}", []).append(errors)
            weighted = _weighted(Path(name), fold, snapshot, labels)
            squared_errors.setdefault(f"ridge, {WEIGHTED}", []).append(weighted)
            mean = metrics["mean"]["values"][0]
            errors = [(mean - labels[response]) ** 2 for _, response in test]
            squared_errors.setdefault("the training mean", []).append(errors)
    for label, parts in squared_errors.items():
        squared = np.concatenate([np.array(part) for part in parts])
        tell(label, **{key: value**0.5 for key, value in interval(squared, prompts).items() if key != "n"})
    plain = np.concatenate([np.array(part) for part in squared_errors["ridge, mean of the ratings"]])
    for label in ("ridge, rounded label", f"ridge, {WEIGHTED}"):
        gain = np.concatenate([np.array(part) for part in squared_errors[label]]) - plain
        tell(f"squared error of {label}, less that of the mean of the ratings", **interval(gain, prompts))


def _weighted(folder: Path, fold: int, snapshot: Path, labels: dict[str, float]) -> list[float]:
    """Fits the plain ridge again with each label weighted by its raters' agreement; returns squared errors held out.

    The trainer's own ridge knows no weights: only fine-tuning does.
    """
    plain = folder / f"{fold}-{next(iter(OPTIONS))}"
    loaded = load_checkpoint(plain / "baseline", device=torch.device("cpu")).loaded
    alphas = json.loads((plain / "metrics.json").read_text(encoding="utf-8"))["baseline"]["alphas"]
    rows = read_snapshot(snapshot)
    answers = answers_of(rows.train, ["score"], reward={"score": 1.0}, rounded=False, by_agreement=True)
    fit, test = (
        frozen_features(loaded, [loaded.frame.encode(item) for item in items_of(tasks)], batch_tokens=4_096)
        for tasks in (rows.train, rows.validation)
    )
    scaling = scaling_of(fit, loaded.network.blocks)
    weight, bias = solve_ridge(scaling.apply(fit), answers.labels, np.array(alphas), times=answers.weights[:, 0])
    # Scaled as the training rows are: what is held out must not shape the model.
    scores = (scaling.apply(test) @ weight.T + bias)[:, 0]
    ids = [item.id for item in items_of(rows.validation)]
    return [(score - labels[response]) ** 2 for score, response in zip(scores.tolist(), ids, strict=True)]


def rated_rows(judgements: Sequence[Row]) -> list[Row]:
    """Returns a row for each prompt with the responses to it; scores of 1..5 become 0..4."""
    by_prompt: dict[str, list[Row]] = {}
    for row in judgements:
        by_prompt.setdefault(row["prompt"], []).append(row)
    rows = []
    for number, (prompt, responses) in enumerate(by_prompt.items()):
        ratings = [rated(row) for row in responses]
        turns = [{"role": "user", "content": prompt}]
        digest = hashlib.sha256(prompt.encode()).hexdigest()
        rows.append({"task": str(number), "prompt_hash": digest, "conversation": turns, "responses": ratings})
    return rows


def rated(row: Row) -> Row:
    scores = [score - 1 for score in row["scores"]]
    mean = sum(scores) / len(scores)
    return {
        "id": str(row["id"]), "text": row["response"], "scores": {"score": mean}, "labels": {"score": round(mean)},
        "ratings": [{"score": score} for score in scores],
    }  # fmt: skip


def predicted(path: Path) -> dict[str, float]:
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return {row["id"]: row["scores"]["score"] for row in rows}


# Output ----------------------------------------------------------------------------------------------------


def interval(
    values: Sequence[float] | NDArray[np.float64], prompts: Sequence[str], *, draws: int = 2_000
) -> dict[str, float]:
    """Returns the mean, with a 95 % interval by resampling prompts and the number of prompts.

    values: [n]; prompts: [n], the prompt of each value. Values of one prompt are not independent, so prompts are drawn
    and bring all of their values along.
    """
    numbers = np.unique(prompts, return_inverse=True)[1]
    sums, counts = np.bincount(numbers, np.asarray(values)), np.bincount(numbers)
    drawn = np.random.default_rng(0).integers(0, len(sums), size=(draws, len(sums)))
    low, high = np.quantile(sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1), [0.025, 0.975])
    return {"value": float(np.mean(values)), "low": float(low), "high": float(high), "n": len(numbers)}


def tell(label: str, **values: Any) -> None:
    rounded = {key: round(value, 4) if isinstance(value, float) else value for key, value in values.items()}
    print(json.dumps({"what": label, **rounded}), file=sys.stderr, flush=True)


def main() -> None:
    parts = {"pairs": pairs, "ratings": ratings}
    for name in sys.argv[1:] or parts:
        parts[name]()


if __name__ == "__main__":
    main()
