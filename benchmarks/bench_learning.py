"""Measures whether anything is learnt: the default backbone on real pairs and ratings, beside what it has to beat.

`python -m benchmarks.bench_learning [pairs] [ratings] [--pairs N] [--epochs 3] [--threads N] [--layers N]`. Pairs:
Anthropic's HH pairs (HH_PAIRS, or ../shared/data/hh_pairs_train.jsonl.gz). Ratings: three scores of 1..5 for each
response (JUDGE_RATINGS, or ../shared/data/llm_judge_ratings.jsonl). Both go through five divisions of the prompts, each
of which is held out once. Intervals are 95 % and resample prompts. With no threads torch decides, with no layers the
ridge; without epochs ridges of ratings are fitted only.
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
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

from benchmarks.measuring import DATA, HH_PAIRS, options, tell
from benchmarks.training import read_hh
from rewards.learning.data import Item
from rewards.learning.train import train

RATINGS = Path(os.environ.get("JUDGE_RATINGS", DATA / "llm_judge_ratings.jsonl"))
FOLDS = 5
Row = dict[str, Any]


def is_out(row: Row, fold: int) -> bool:
    """Whether the row's prompt is held out in the fold."""
    return int(hashlib.sha256(row["prompt_hash"].encode()).hexdigest(), 16) % FOLDS == fold


def trained(folder: Path, rows: Sequence[Row], attributes: Sequence[str], *, fold: int, **config: Any) -> Row:
    """Trains on a snapshot whose validation part has the prompts of this fold; returns the metrics."""
    snapshot, run = folder / "snapshot", folder / "run"
    snapshot.mkdir()
    run.mkdir()
    files = {}
    for name, side in (("train.jsonl", False), ("validation.jsonl", True)):
        text = "".join(json.dumps(row) + "\n" for row in rows if is_out(row, fold) is side)
        (snapshot / name).write_text(text, encoding="utf-8")
        files[name] = hashlib.sha256(text.encode()).hexdigest()
    manifest = {"format": 1, "content_hash": files["train.jsonl"], "attributes": list(attributes), "files": files}
    (snapshot / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    settings = {"snapshot": str(snapshot), "learning_rate": 3e-5, "max_length": 256, **config}
    (run / "config.json").write_text(json.dumps(settings), encoding="utf-8")
    train(run)
    metrics: Row = json.loads((run / "metrics.json").read_text(encoding="utf-8"))
    return metrics


def predictions(folder: Path, name: str) -> dict[str, Row]:
    rows = map(json.loads, (folder / f"run/{name}.jsonl").read_text(encoding="utf-8").splitlines())
    return {row["id"]: row for row in rows}


# Pairs -----------------------------------------------------------------------------------------------------


def pairs(most: int, *, layers: int, threads: int) -> None:
    """Prints how often each predictor prefers the better response, with every pair held out once."""
    items = read_hh(HH_PAIRS)[: most or None]
    rows = [pair_row(number, good, bad) for number, (good, bad) in enumerate(items)]
    config = {"stages": ["bradley_terry"], "epochs": 1, "schedule": "cosine", "layers": layers, "threads": threads}
    hits: dict[str, list[float]] = {}
    prompts: list[str] = []
    for fold in range(FOLDS):
        began, out = time.monotonic(), [row for row in rows if is_out(row, fold)]
        with tempfile.TemporaryDirectory(prefix="rewardloop-bench-") as folder:
            metrics = trained(Path(folder), rows, ["helpfulness"], fold=fold, **config)
            ridge, kept = (predictions(Path(folder), name) for name in ("baseline_predictions", "predictions"))
            tuned = predictions(Path(folder), "fine_tuned_predictions") if metrics["fine_tuned"] else kept
        fit, test = (
            [pair for pair, row in zip(items, rows, strict=True) if is_out(row, fold) is side] for side in (False, True)
        )
        accuracies = {
            "longer wins": [float(len(good.response) > len(bad.response)) for good, bad in test],
            "TF-IDF, Bradley-Terry": tf_idf(fit, test),
            "ridge on frozen MiniLM": [right(row, ridge) for row in out],
            "fine-tuned": [right(row, tuned) for row in out],
            "the one that is kept": [right(row, kept) for row in out],
        }
        prompts += [row["prompt_hash"] for row in out]
        for label, values in accuracies.items():
            hits.setdefault(label, []).extend(values)
        means = {label: float(np.mean(values)) for label, values in accuracies.items()}
        kinds = {"layers": metrics["baseline"]["layers"], "candidate": metrics["candidate"]["kind"]}
        tell(f"division {fold + 1}", seconds=round(time.monotonic() - began), **kinds, **means)
    for label, values in hits.items():
        tell(label, **interval(values, prompts), pairs=len(values))
    # Pair by pair: both predictors see the same pairs, so the difference is known better than either share.
    for baseline in ("TF-IDF, Bradley-Terry", "ridge on frozen MiniLM"):
        gains = np.array(hits["fine-tuned"]) - np.array(hits[baseline])
        tell(f"fine-tuned less {baseline}", **interval(gains, prompts))


def pair_row(number: int, good: Item, bad: Item) -> Row:
    """Returns a snapshot's row, in which the better response comes first or second by turns.

    Always first, it would let a model do well that knows nothing but the position.
    """
    turns = [{"role": turn.role, "content": turn.content} for turn in good.conversation]
    sides = [good, bad] if number % 2 else [bad, good]
    return {
        "task": str(number),
        "prompt_hash": hashlib.sha256(json.dumps(turns).encode()).hexdigest(),
        "conversation": turns,
        "responses": [{"id": f"{number}:{item.id}", "text": item.response, "scores": {}} for item in sides],
        "preference": -1 if number % 2 else 1,
    }


def right(row: Row, rewards: dict[str, Row]) -> float:
    first, second = (rewards[response["id"]]["reward"] for response in row["responses"])
    return float((second - first) * row["preference"] > 0)


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
    # No intercept: it would prefer whichever response is named first.
    plain = LogisticRegression(fit_intercept=False, max_iter=2_000)
    penalties = GridSearchCV(plain, {"C": [0.03, 0.1, 0.3, 1, 3, 10]}, scoring="neg_log_loss")
    model = penalties.fit(features.multiply(signs[:, None]).tocsr(), signs)
    return [float(value > 0) for value in model.decision_function(differences(test))]


# Ratings ---------------------------------------------------------------------------------------------------


def ratings(epochs: int, *, threads: int) -> None:
    """Prints the RMSE of each predictor, with every prompt held out once."""
    rows = rated_rows([json.loads(line) for line in RATINGS.read_text(encoding="utf-8").splitlines()])
    squared_errors: dict[str, list[float]] = {}
    prompts: list[str] = []
    for fold in range(FOLDS):
        test = [(row, response) for row in rows if is_out(row, fold) for response in row["responses"]]
        prompts += [row["prompt_hash"] for row, _ in test]
        with tempfile.TemporaryDirectory(prefix="rewardloop-bench-") as folder:
            metrics = trained(Path(folder), rows, ["score"], fold=fold, epochs=epochs, patience=2, threads=threads)
            of_files = {"ridge": "baseline_predictions", "fine-tuned if better": "predictions"}
            known = {label: predictions(Path(folder), name) for label, name in of_files.items()}
        mean = metrics["mean"]["values"][0]
        guesses = {label: [of[one["id"]]["scores"]["score"] for _, one in test] for label, of in known.items()}
        for label, values in {**guesses, "the training mean": [mean for _ in test]}.items():
            errors = [(guess - one["scores"]["score"]) ** 2 for guess, (_, one) in zip(values, test, strict=True)]
            squared_errors.setdefault(label, []).extend(errors)
    for label, squared in squared_errors.items():
        tell(label, **{key: value**0.5 for key, value in interval(squared, prompts).items() if key != "n"})


def rated_rows(judgements: Sequence[Row]) -> list[Row]:
    """Returns a row for each prompt with the responses to it; scores of 1..5 become 0..4."""
    by_prompt: dict[str, list[Row]] = {}
    for row in judgements:
        scores = [score - 1 for score in row["scores"]]
        mean = sum(scores) / len(scores)
        levels = {"scores": {"score": mean}, "labels": {"score": round(mean)}}
        rated = {"id": str(row["id"]), "text": row["response"], "ratings": [{"score": score} for score in scores]}
        by_prompt.setdefault(row["prompt"], []).append(rated | levels)
    return [
        {
            "task": str(number),
            "prompt_hash": hashlib.sha256(prompt.encode()).hexdigest(),
            "conversation": [{"role": "user", "content": prompt}],
            "responses": responses,
        }
        for number, (prompt, responses) in enumerate(by_prompt.items())
    ]


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


def main(words: Sequence[str]) -> None:
    given = options(words, parts=("pairs", "ratings"), pairs=0, epochs=3, threads=0, layers=0)
    if "pairs" in given.parts:
        pairs(given.pairs, layers=given.layers, threads=given.threads)
    if "ratings" in given.parts:
        ratings(given.epochs, threads=given.threads)


if __name__ == "__main__":
    main(sys.argv[1:])
