"""A segment with the mark # is a bad one: what models make of it, stored, loaded, evaluated and asked for scores."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModel, AutoModelForSequenceClassification

from rewards.learning.data import BadRow, Item, Turn, items_of, read_snapshot, read_tasks, tasks_of
from rewards.learning.evaluate import evaluate
from rewards.learning.finetune import TuningRun, fine_tune
from rewards.learning.inference import predict_all
from rewards.learning.model_files import MANIFEST, SEGMENT_HEAD, CorruptCheckpoint, load_checkpoint, save_checkpoint
from rewards.learning.resume_point import Place
from rewards.learning.score import Scored, SegmentScored, load, score
from rewards.learning.segment_baseline import NoSegmentTokens
from rewards.learning.splits import carve_dev
from rewards.learning.train import train
from tests.rewards.learning.benchmarks.builders import pair_row
from tests.rewards.learning.builders import Row, read_events, read_json, write_jsonl
from tests.rewards.learning.segment_builders import (
    ASPECTS,
    make_segmented_rows,
    make_segmented_run,
    make_segmented_snapshot,
)
from tests.rewards.learning.test_model_files import make_checkpoint
from tests.rewards.learning.test_train import Stopped, steady, stop_after

CPU = torch.device("cpu")
LEARNS: dict[str, Any] = {
    "epochs": 7,
    "patience": 7,
    "learning_rate": 3e-3,
    "head_learning_rate": 1e-2,
    "alphas": [1e8],  # so the ridge says the mean, and the network finds out by itself
}
BAD, GOOD = "#### a. ", "ok ok. "
ITEM = Item("i", (Turn("user", "question?"),), BAD + GOOD, ((0, len(BAD)), (len(BAD), len(BAD + GOOD))))


def with_either(rows: list[Row]) -> list[Row]:
    """Of every three tasks one has no segments, and one has no scores of whole responses."""
    for number, row in enumerate(rows):
        for response in row["responses"]:
            if number % 3 == 0:
                del response["segments"], response["segment_scores"]
            elif number % 3 == 1:
                response["scores"], response["labels"] = {}, {}
    return rows


@pytest.fixture(scope="module", params=["encoder", "decoder"])
def learnt(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fine-tuned network of rows that have scores of responses, of segments, or of both."""
    backbone = request.getfixturevalue(f"{request.param}_directory")
    run = make_segmented_run(
        tmp_path_factory.mktemp("learnt"), backbone=backbone, rows=with_either(make_segmented_rows(48)), **LEARNS
    )
    train(run)
    return run


def beats_mean_and_position(segments: Any) -> bool:
    """Whether the error is half of the mean's, and the worst segment is found more often than at any fixed place."""
    correctness, worst = segments["aspects"]["correctness"], segments["worst"]["correctness"]
    finds = worst["accuracy"] > max(worst["position"]["accuracy"], worst["last"], worst["chance"]) + 0.1
    return bool(correctness["rmse"] < 0.5 * correctness["mean_rmse"] and finds)


# Learning --------------------------------------------------------------------------------------------------


def test_a_ridge_finds_the_marked_segment(backbone: Path, tmp_path: Path) -> None:
    run = make_segmented_run(tmp_path, backbone=backbone, rows=make_segmented_rows(24), epochs=0)
    train(run)
    metrics = read_json(run / "metrics.json")
    assert beats_mean_and_position(metrics["baseline"]["segments"])
    assert metrics["candidate"]["kind"] == "ridge"
    assert metrics["candidate"]["segments"] == metrics["baseline"]["segments"]


def test_so_does_a_network_and_it_scores_responses_as_well(learnt: Path) -> None:
    metrics = read_json(learnt / "metrics.json")
    assert metrics["candidate"]["kind"] == "finetuned"
    assert beats_mean_and_position(metrics["candidate"]["segments"])
    assert not beats_mean_and_position(metrics["baseline"]["segments"])
    assert metrics["candidate"]["rmse"] < 0.7 * metrics["mean"]["rmse"]


def test_the_mean_of_the_training_is_the_yardstick(learnt: Path) -> None:
    metrics = read_json(learnt / "metrics.json")
    for name in ASPECTS:
        yardstick = metrics["mean"]["segments"]["aspects"][name]["rmse"]
        assert yardstick == pytest.approx(metrics["candidate"]["segments"]["aspects"][name]["mean_rmse"])


def test_segments_alone_are_enough(decoder_directory: Path, tmp_path: Path) -> None:
    rows = make_segmented_rows(24, with_attributes=False)
    weights = {"attribute_weights": {"helpfulness": 1.0}}  # of whole responses, of which nothing is known
    run = make_segmented_run(
        tmp_path, backbone=decoder_directory, rows=rows, attributes=["helpfulness"], epochs=1, **weights
    )
    train(run)
    assert beats_mean_and_position(read_json(run / "metrics.json")["candidate"]["segments"])
    network = AutoModelForSequenceClassification.from_pretrained(run / "model")
    assert network.config.id2label == dict(enumerate(ASPECTS))
    expected = read_json(run / "metrics.json")["candidate"]["rmse"]
    assert evaluated(run, tmp_path / "evaluation")["rmse"] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("scored", ["all", "half", "none"])
def test_where_a_rubric_is_of_segments_only_comparisons_go_through_every_stage(
    scored: str, decoder_directory: Path, tmp_path: Path
) -> None:
    rows = make_segmented_rows(48, with_attributes=False)
    for number, row in enumerate(rows):
        first, second = ("#" in response["text"] for response in row["responses"])
        row["preference"] = 2 * (first - second)
        for response in row["responses"] if scored == "none" or (scored == "half" and number % 2) else ():
            del response["segments"], response["segment_scores"]
    run = make_segmented_run(tmp_path, backbone=decoder_directory, rows=rows, attributes=[], epochs=1, stages=["joint"])
    train(run)
    metrics = json.loads((run / "metrics.json").read_text(encoding="utf-8"), parse_constant=pytest.fail)
    assert metrics["candidate"]["pairwise"]["pairs"] > 0
    assert ("segments" in metrics["candidate"]) == (scored != "none")
    again = evaluated(run, tmp_path / "evaluation")
    assert again["pairwise"]["accuracy"] == pytest.approx(metrics["candidate"]["pairwise"]["accuracy"])
    pairs = write_jsonl(tmp_path / "pairs.jsonl", [pair_row("mine")])
    assert evaluated(run, tmp_path / "benchmark", pairs)["all"]["accuracy"] in (0, 1)
    assert set(load(run / "model").score([ITEM])[0].scores) == set(ASPECTS)
    assert (run / "reward" / "config.json").is_file()


def test_the_sizes_of_a_part_tell_what_was_dropped(encoder_directory: Path, tmp_path: Path) -> None:
    run = make_segmented_run(
        tmp_path, backbone=encoder_directory, rows=make_segmented_rows(12), epochs=0, max_length=14
    )
    train(run)
    metrics = read_json(run / "metrics.json")
    fit, candidate = metrics["data"]["fit"]["segments"], metrics["candidate"]["segments"]
    assert 0 < fit["dropped"] < fit["all"]
    assert fit["labels"] == 2 * (fit["all"] - fit["dropped"])
    assert 0 < candidate["aspects"]["clarity"]["n"] == candidate["count"] - candidate["dropped"] < candidate["count"]


def test_the_head_starts_from_a_ridge_that_has_not_seen_the_dev_prompts(
    encoder_directory: Path, tmp_path: Path
) -> None:
    rows = make_segmented_rows(12)
    tasks = list(tasks_of("rows", enumerate(rows[:9], start=1)))
    dev = {task.id for task in carve_dev(tasks, 0.15)[1]}
    losses = []
    for name, shift in (("as_it_is", 0.0), ("other", 4.0)):
        for response in (response for row in rows if row["task"] in dev for response in row["responses"]):
            response["segment_scores"] = [[abs(shift - value) for value in row] for row in response["segment_scores"]]
        run = make_segmented_run(tmp_path / name, backbone=encoder_directory, rows=rows, max_steps=1)
        train(run)
        losses.append(read_json(run / "metrics.json")["training"]["losses"][0])
    assert losses[0] == losses[1]


def test_segments_that_nobody_can_read_are_refused(decoder_directory: Path, tmp_path: Path) -> None:
    backbone = shutil.copytree(decoder_directory, tmp_path / "backbone")
    template = backbone / "chat_template.jinja"
    template.write_text(template.read_text(encoding="utf-8").replace("trim", "upper"), encoding="utf-8")
    run = make_segmented_run(tmp_path, backbone=backbone, rows=make_segmented_rows(8), epochs=0)
    with pytest.raises(NoSegmentTokens, match="raise max_length, or take a backbone"):
        train(run)


def test_a_stopped_run_goes_on_to_the_same_segment_head(
    decoder_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rewards.learning.train.beyond_chance", lambda gains: True)
    rows, config = make_segmented_rows(8), {**LEARNS, "epochs": 2, "checkpoint_steps": 2}
    whole, stopped = (
        make_segmented_run(tmp_path / n, backbone=decoder_directory, rows=rows, **config) for n in ("whole", "stopped")
    )
    train(whole)
    with pytest.MonkeyPatch.context() as plug:
        stop_after(3, plug)
        with pytest.raises(Stopped):
            train(stopped)
    train(stopped)
    assert "resumed" in [event["event"] for event in read_events(stopped)]
    first, second = (load_file(run / "model" / SEGMENT_HEAD) for run in (whole, stopped))
    assert all(torch.equal(first[name], second[name]) for name in ("weight", "bias"))
    metrics = [steady(read_json(run / "metrics.json")) for run in (whole, stopped)]
    assert metrics[0]["candidate"] == metrics[1]["candidate"]


def test_folds_are_trained_on_segments_too(
    encoder_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts = []

    def watched(run: TuningRun) -> Place:
        head = run.loaded.network.segment_head
        assert head is not None
        starts.append(head.bias.tolist())
        return fine_tune(run)

    monkeypatch.setattr("rewards.learning.train.beyond_chance", lambda gains: True)
    monkeypatch.setattr("rewards.learning.cross_training.fine_tune", watched)
    config = {**LEARNS, "epochs": 1, "max_steps": 2, "cross_fit_minutes": 30}
    rows = with_either(make_segmented_rows(12))
    run = make_segmented_run(tmp_path, backbone=encoder_directory, rows=rows, **config)
    train(run)
    crossed = [json.loads(line) for line in (run / "cross_fitted.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(crossed) == 18
    # Each starts from the means of other prompts.
    assert len(starts) == 5
    assert len({tuple(bias) for bias in starts}) > 1


# Storing ---------------------------------------------------------------------------------------------------


def test_a_stored_model_gives_the_scores_of_segments_that_were_reported(learnt: Path) -> None:
    loaded = load_checkpoint(learnt / "model", device=CPU).loaded
    tasks = read_snapshot(learnt.parent / "snapshot").validation
    predicted = predict_all(loaded, [loaded.frame.encode(item) for item in items_of(tasks)], batch_tokens=256)
    rows = [json.loads(line) for line in (learnt / "predictions.jsonl").read_text(encoding="utf-8").splitlines()]
    reported = [[*segment.values()] for row in rows for segment in row.get("segments", ())]
    assert predicted.segments is not None
    np.testing.assert_allclose(predicted.segments, reported, atol=1e-6)
    assert {"segments" in row for row in rows} == {True, False}


def test_plain_transformers_loads_the_model_as_one_without_segments(learnt: Path) -> None:
    manifest = read_json(learnt / "model" / MANIFEST)
    assert manifest["aspects"] == list(ASPECTS)
    assert SEGMENT_HEAD in manifest["files"]
    loaded = load_checkpoint(learnt / "model", device=CPU).loaded
    kind = AutoModelForSequenceClassification if manifest["pooling"] == "last" else AutoModel
    plain, report = kind.from_pretrained(learnt / "model", output_loading_info=True)
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    for name, weight in plain.named_parameters():
        assert torch.equal(weight, loaded.network.network.get_parameter(name))
    assert not any("segments" in path.parts for path in (learnt / "reward").rglob("*"))


def test_a_changed_head_of_segments_is_refused(learnt: Path, tmp_path: Path) -> None:
    model = shutil.copytree(learnt / "model", tmp_path / "model")
    (model / SEGMENT_HEAD).write_bytes(b"other")
    with pytest.raises(CorruptCheckpoint, match="segments/head"):
        load_checkpoint(model, device=CPU)


def test_a_model_without_aspects_is_stored_as_before(backbone: Path, tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "model", make_checkpoint(backbone))
    stored = read_json(tmp_path / "model" / MANIFEST)
    assert not {"aspects", "aspect_means", "by_segments"} & set(stored)
    assert not (tmp_path / "model" / "segments").exists()


# Evaluating ------------------------------------------------------------------------------------------------


def evaluated(run: Path, place: Path, data: Path | None = None) -> Any:
    place.mkdir()
    rows = data or run.parent / "snapshot" / "validation.jsonl"
    config = {"model": str(run / "model"), "data": str(rows), "precision": "float32"}
    (place / "config.json").write_text(json.dumps(config), encoding="utf-8")
    evaluate(place)
    return read_json(place / "metrics.json")


def test_evaluating_gives_the_numbers_of_training(learnt: Path, tmp_path: Path) -> None:
    segments, expected = evaluated(learnt, tmp_path / "e")["segments"], read_json(learnt / "metrics.json")["candidate"]
    assert segments["rmse"] == pytest.approx(expected["segments"]["rmse"], abs=1e-6)
    assert segments["worst"] == expected["segments"]["worst"]


def test_the_manifest_beside_the_rows_says_which_score_is_which(learnt: Path, tmp_path: Path) -> None:
    rows = make_segmented_rows(6, seed=5)
    for response in (response for row in rows for response in row["responses"]):
        response["segment_scores"] = [
            [6.0, clarity, correctness] for correctness, clarity in response["segment_scores"]
        ]
    folder = make_segmented_snapshot(
        tmp_path / "s", train=[], validation=rows, aspects=["safety", "clarity", "correctness"], levels={"safety": 7}
    )
    data = folder / "validation.jsonl"
    segments = evaluated(learnt, tmp_path / "e", data)["segments"]
    assert segments["aspects"]["correctness"]["rmse"] < 0.5 * segments["aspects"]["correctness"]["mean_rmse"]
    (folder / "manifest.json").unlink()
    with pytest.raises(BadRow, match="does not hold a number or null for each of correctness, clarity"):
        evaluated(learnt, tmp_path / "without", data)


# Scoring ---------------------------------------------------------------------------------------------------


def test_the_marked_segment_is_scored_lower(learnt: Path) -> None:
    result = load(learnt / "model").score([ITEM])[0]
    assert isinstance(result, SegmentScored)
    assert result.segments[0]["correctness"] < result.segments[1]["correctness"] - 1


def test_scores_of_segments_do_not_depend_on_neighbours(learnt: Path) -> None:
    tasks = read_tasks(learnt.parent / "snapshot" / "validation.jsonl", aspects=dict.fromkeys(ASPECTS, 5))
    items = [*items_of(list(tasks)), ITEM]
    scorer = load(learnt / "model", precision="float32")
    together, alone = scorer.score(items), [scorer.score([item])[0] for item in items]
    for one, other, item in zip(together, alone, items, strict=True):
        assert one.reward == pytest.approx(other.reward, abs=1e-5)
        if item.segments:
            assert isinstance(one, SegmentScored)
            assert isinstance(other, SegmentScored)
            pairs = zip(one.segments, other.segments, strict=True)
            assert all(a == pytest.approx(b, abs=1e-5) for a, b in pairs)


def test_segments_change_no_score_of_the_response(learnt: Path) -> None:
    scorer = load(learnt / "model")
    whole = Item(ITEM.id, ITEM.conversation, ITEM.response)
    first, second = scorer.score([ITEM, whole])
    assert first.scores == pytest.approx(second.scores, abs=1e-6)
    assert first.uncertainty == pytest.approx(second.uncertainty, abs=1e-6)
    assert type(second) is Scored
    assert scorer.key(scorer.encode(ITEM)) != scorer.key(scorer.encode(whole))


def test_a_segment_beyond_the_limit_has_no_scores(learnt: Path) -> None:
    long = Item("i", ITEM.conversation, "x" * 90 + "y", ((0, 90), (90, 91)))
    result = load(learnt / "model").score([long])[0]
    assert isinstance(result, SegmentScored)
    assert (set(result.segments[0]), result.segments[1]) == (set(ASPECTS), {})


def test_it_scores_segments_of_a_file(learnt: Path, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model": str(learnt / "model")}), encoding="utf-8")
    item = {"conversation": [{"role": "user", "content": "question?"}], "response": ITEM.response}
    write_jsonl(tmp_path / "items.jsonl", [{"id": "a", **item, "segments": ITEM.segments}, {"id": "b", **item}])
    score(tmp_path)
    first, second = (json.loads(line) for line in (tmp_path / "scores.jsonl").read_text(encoding="utf-8").splitlines())
    assert [set(segment) for segment in first["segments"]] == [set(ASPECTS)] * 2
    assert list(second) == ["id", "scores", "reward", "uncertainty", "truncated", "precision"]


def test_a_model_that_scores_no_segments_answers_as_before(backbone: Path, tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "model", make_checkpoint(backbone))
    scorer = load(tmp_path / "model")
    assert type(scorer.score([ITEM])[0]) is Scored
    assert scorer.encode(ITEM).segments == ()
