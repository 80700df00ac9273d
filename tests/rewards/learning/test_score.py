from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

import numpy as np
import pytest

from rewards.learning.data import BadRow, EmptyPart, Item, Turn
from rewards.learning.ensemble import FILE, Ensemble, add_ensemble
from rewards.learning.evaluate import evaluate
from rewards.learning.model_files import CorruptCheckpoint
from rewards.learning.score import load, score
from rewards.learning.train import train
from tests.rewards.learning.builders import make_response, make_row, make_run, read_json, write_jsonl


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, decoder_directory: Path) -> Path:
    run = make_run(tmp_path_factory.mktemp("trained"), backbone=decoder_directory, epochs=1)
    train(run)
    return run


def make_directory(directory: Path, **config: str) -> Path:
    directory.mkdir(exist_ok=True)
    (directory / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return directory


def make_item(text: str) -> Item:
    return Item("i", (Turn("user", "question?"),), text)


def test_the_reward_is_the_weighted_sum_of_the_scores(trained: Path) -> None:
    result = load(trained / "model").score([make_item("ok")])[0]
    assert result.reward == pytest.approx(sum(result.scores.values()) / 2)


def test_results_come_in_the_order_of_the_items(trained: Path) -> None:
    scorer = load(trained / "model")
    items = [make_item("ok " * n) for n in (9, 1, 5)]
    together = [result.reward for result in scorer.score(items)]
    assert together == pytest.approx([scorer.score([item])[0].reward for item in items], abs=1e-5)


def test_equal_responses_tie_whatever_they_are_scored_with(trained: Path) -> None:
    twice, others = make_item("good " * 9), [make_item("bad " * n) for n in range(1, 12)]
    results = load(trained / "model", batch_tokens=64).score([twice, *others, twice])
    assert results[0] == results[-1]


def test_an_empty_response_has_a_score(trained: Path) -> None:
    assert math.isfinite(load(trained / "model").score([make_item("")])[0].reward)


def test_no_items_have_no_scores(trained: Path) -> None:
    assert load(trained / "model").score([]) == []


def test_an_item_over_the_limit_is_flagged(trained: Path) -> None:
    results = load(trained / "model").score([make_item("ok"), make_item("ok " * 100)])
    assert [result.truncated for result in results] == [False, True]


def test_equal_tokens_have_one_key(trained: Path) -> None:
    scorer = load(trained / "model")
    keys = [scorer.key(scorer.encode(make_item(text))) for text in ("ok", "ok", "no")]
    assert keys[0] == keys[1] != keys[2]


def test_with_an_ensemble_the_scores_are_the_same_and_uncertain(trained: Path, tmp_path: Path) -> None:
    shutil.copytree(trained / "model", tmp_path / "model")
    items = [make_item("ok " * n) for n in (9, 1, 5)]
    plain = load(trained / "model")
    width = plain.checkpoint.loaded.network.head.weight.shape[1]
    add_ensemble(tmp_path / "model", Ensemble(np.random.default_rng(0).normal(size=(8, 2, width)), np.zeros((8, 2))))
    results = load(tmp_path / "model").score(items)
    assert [score.reward for score in results] == pytest.approx(
        [score.reward for score in plain.score(items)], abs=1e-6
    )
    assert all(result.uncertainty and result.uncertainty > 0 for result in results)


def test_a_changed_ensemble_is_refused(trained: Path, tmp_path: Path) -> None:
    shutil.copytree(trained / "model", tmp_path / "model")
    add_ensemble(tmp_path / "model", Ensemble(np.zeros((8, 2, 16)), np.zeros((8, 2))))
    (tmp_path / "model" / FILE).write_bytes(b"other")
    with pytest.raises(CorruptCheckpoint, match="heads"):
        load(tmp_path / "model")


def test_it_scores_a_file(trained: Path, tmp_path: Path) -> None:
    make_directory(tmp_path, model=str(trained / "model"))
    turns = [{"role": "user", "content": "question?"}]
    write_jsonl(tmp_path / "items.jsonl", [{"id": n, "conversation": turns, "response": "ok"} for n in "ab"])
    score(tmp_path)
    rows = [json.loads(line) for line in (tmp_path / "scores.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [row["id"] for row in rows] == ["a", "b"]
    assert set(rows[0]["scores"]) == {"helpfulness", "verbosity"}


def test_it_refuses_an_item_without_a_response(trained: Path, tmp_path: Path) -> None:
    make_directory(tmp_path, model=str(trained / "model"))
    write_jsonl(tmp_path / "items.jsonl", [{"id": "a", "conversation": [{"role": "user", "content": "q"}]}])
    with pytest.raises(BadRow, match=r"items\.jsonl, line 1: lacks 'response'"):
        score(tmp_path)


def test_evaluating_gives_the_numbers_of_training(trained: Path, tmp_path: Path) -> None:
    data = read_json(trained / "config.json")["snapshot"] + "/validation.jsonl"
    evaluate(make_directory(tmp_path, model=str(trained / "model"), data=data))
    metrics, expected = read_json(tmp_path / "metrics.json"), read_json(trained / "metrics.json")["candidate"]
    assert metrics["rmse"] == pytest.approx(expected["rmse"], abs=1e-6)
    assert metrics["pairwise"] == expected["pairwise"]
    assert len((tmp_path / "predictions.jsonl").read_text(encoding="utf-8").splitlines()) == 12


def test_it_refuses_to_evaluate_on_rows_without_labels(trained: Path, tmp_path: Path) -> None:
    data = write_jsonl(tmp_path / "rows.jsonl", [make_row(1, responses=[make_response("r", "text", {"clarity": 1})])])
    with pytest.raises(EmptyPart, match="no response with a label"):
        evaluate(make_directory(tmp_path / "e", model=str(trained / "model"), data=str(data)))
