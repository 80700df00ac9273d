"""The stage from files to files: what each method learns, what must not change it, and how it goes on."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from rewards.learning.__main__ import main
from rewards.learning.aligning import training
from rewards.learning.aligning.align import align
from rewards.learning.aligning.align_config import METHODS
from rewards.learning.aligning.judged_rows import NoRows
from rewards.learning.aligning.policy import Policy
from rewards.learning.config import BadConfig
from rewards.learning.data import LeakedPrompt
from rewards.learning.finetune import Diverged, OutOfMemory
from tests.rewards.learning.aligning.builders import make_alignment, make_judged_row, make_judged_rows
from tests.rewards.learning.builders import read_events, read_json, write_jsonl
from tests.servers import ROOT

Metrics = dict[str, Any]


def aligned(directory: Path, policy: Path, method: str = "dpo_2d", **config: Any) -> Metrics:
    align(make_alignment(directory, policy, method, **config))
    metrics: Metrics = read_json(directory / "metrics.json")
    return metrics


def weights(run: Path) -> dict[str, torch.Tensor]:
    return load_file(run / "policy" / "model.safetensors")


def losses(metrics: Metrics) -> list[float]:
    found: list[float] = metrics["training"]["losses"]
    return found


@pytest.mark.parametrize("method", METHODS)
def test_each_method_learns_what_people_chose(method: str, decoder_directory: Path, tmp_path: Path) -> None:
    metrics = aligned(tmp_path / "run", decoder_directory, method, epochs=4)
    assert metrics["held_out"]["examples"] > 0
    assert metrics["train"]["loss"] < losses(metrics)[0]
    assert metrics["train"]["margin"] > 0
    assert metrics["train"]["reward_accuracy"] > 0.8


@pytest.mark.parametrize(("method", "segments"), [("dpo", 1), ("dpo_1d", 1), ("dpo_2d", 3)])
def test_training_begins_where_the_policy_is_its_reference(
    method: str, segments: int, decoder_directory: Path, tmp_path: Path
) -> None:
    metrics = aligned(tmp_path / "run", decoder_directory, method)
    assert losses(metrics)[0] == pytest.approx(segments * np.log(2), abs=1e-4)


def test_the_policy_is_a_plain_directory_of_transformers(decoder_directory: Path, tmp_path: Path) -> None:
    aligned(tmp_path / "run", decoder_directory)
    network = AutoModelForCausalLM.from_pretrained(tmp_path / "run" / "policy")
    assert AutoTokenizer.from_pretrained(tmp_path / "run" / "policy").chat_template
    assert not torch.equal(
        network.lm_head.weight, AutoModelForCausalLM.from_pretrained(decoder_directory).lm_head.weight
    )
    about = read_json(tmp_path / "run" / "policy" / "alignment.json")
    assert about["aspect_weights"] == {"correctness": 0.5, "clarity": 0.5}
    assert set(about["files"]) >= {"config.json", "model.safetensors", "tokenizer.json"}


def test_the_metrics_say_how_much_data_there_was_and_what_was_lost(decoder_directory: Path, tmp_path: Path) -> None:
    metrics = aligned(tmp_path / "run", decoder_directory, max_length=12, held_out_share=0.25)
    counts = metrics["data"]["train"]
    assert (counts["rows"], metrics["data"]["held_out"]["rows"]) == (9, 3)
    assert counts["segments"] + counts["segments_dropped"] == 9 * 6
    assert min(counts["segments_dropped"], counts["responses_cut"], counts["prompts_cut"]) > 0


def test_samples_say_how_far_the_policy_has_moved(decoder_directory: Path, tmp_path: Path) -> None:
    still, moved = (
        aligned(tmp_path / str(rate), decoder_directory, learning_rate=rate, samples=2, held_out_share=0.25)["sampled"]
        for rate in (1e-12, 3e-2)
    )
    assert still["kl_per_token"] == pytest.approx(0, abs=1e-6)
    assert moved["kl_per_token"] > 1e-3
    answers = (tmp_path / "0.03" / "samples.jsonl").read_text(encoding="utf-8").splitlines()
    assert [set(json.loads(answer)) for answer in answers] == [{"conversation", "response", "ended"}] * 2


def test_answers_may_be_as_long_as_the_policy_can_read(decoder_directory: Path, tmp_path: Path) -> None:
    sampled = aligned(tmp_path / "run", decoder_directory, samples=1, sample_tokens=500)["sampled"]
    assert 0 < sampled["tokens"] < 64


def test_a_steered_policy_is_asked_for_the_requested_levels(decoder_directory: Path, tmp_path: Path) -> None:
    aligned(tmp_path / "run", decoder_directory, "steerlm", requested={"verbosity": 2}, samples=1)
    answer = json.loads((tmp_path / "run" / "samples.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert answer["conversation"][-1]["content"].endswith("?\n\nhelpfulness: 4, verbosity: 2")
    assert read_json(tmp_path / "run" / "policy" / "alignment.json")["requested"] == {"helpfulness": 4, "verbosity": 2}


def test_steerlm_learns_from_rejected_responses_of_known_levels(decoder_directory: Path, tmp_path: Path) -> None:
    rows = make_judged_rows(8)
    rated = [{**row, "rejected_attributes": {"verbosity": 0, "helpfulness": 0}} for row in rows]
    counts = [
        aligned(tmp_path / str(n), decoder_directory, "steerlm", rows=given, held_out_share=0)["train"]["examples"]
        for n, given in enumerate((rows, rated))
    ]
    assert counts == [8, 16]


def test_an_attribute_that_no_row_has_cannot_be_requested(decoder_directory: Path, tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match="requested names humour, but the rows have helpfulness, verbosity"):
        aligned(tmp_path / "run", decoder_directory, "steerlm", requested={"humour": 1})


def test_with_equal_weights_one_dimension_is_dpo(decoder_directory: Path, tmp_path: Path) -> None:
    """Scores of 1 in every segment, taken as they are."""
    rows = make_judged_rows(8)
    for row in rows:
        for segment in row["chosen_segments"] + row["rejected_segments"]:
            segment["scores"] = {"correctness": 1}
    plain, flat = (
        losses(aligned(tmp_path / method, decoder_directory, method, rows=rows, rejected_weight="identity"))
        for method in ("dpo", "dpo_1d")
    )
    np.testing.assert_allclose(flat, plain, atol=1e-6)


def test_with_one_segment_of_weight_1_two_dimensions_are_dpo(decoder_directory: Path, tmp_path: Path) -> None:
    rows = make_judged_rows(8)
    for row in rows:
        for side in ("chosen", "rejected"):
            row[f"{side}_segments"] = [{"start": 0, "end": len(row[side]), "scores": {"correctness": 1}}]
    plain, flat = (
        losses(aligned(tmp_path / method, decoder_directory, method, rows=rows, rejected_weight="identity"))
        for method in ("dpo", "dpo_2d")
    )
    np.testing.assert_allclose(flat, plain, atol=1e-6)


@pytest.mark.parametrize("rejected_weight", ["inverted", "identity"])
def test_what_the_rejected_weight_pushes_down(rejected_weight: str, decoder_directory: Path, tmp_path: Path) -> None:
    """Of a rejected response with a good and a bad segment: inverted the bad one, as it stands the good one."""
    rows = [make_judged_row(n, [True], [True, False]) for n in range(8)]
    for row in rows:
        for segment, score in zip(row["rejected_segments"], (4, 0), strict=True):
            segment["scores"] = {"correctness": score}
        row["chosen_segments"][0]["scores"] = {"correctness": 0}
    run = tmp_path / "run"
    aligned(run, decoder_directory, "dpo_1d", rows=rows, rejected_weight=rejected_weight, epochs=4, beta=0.5)
    before, after = (log_prob_of_segments(place, rows[0]) for place in (decoder_directory, run / "policy"))
    good, bad = (b - a for a, b in zip(before, after, strict=True))
    assert (bad < good) == (rejected_weight == "inverted")
    assert min(good, bad) < 0


@torch.no_grad()
def log_prob_of_segments(place: Path, row: dict[str, Any]) -> list[float]:
    """By nothing but transformers; a token is a character."""
    tokenizer, network = AutoTokenizer.from_pretrained(place), AutoModelForCausalLM.from_pretrained(place)
    turns = [*row["conversation"], {"role": "assistant", "content": row["rejected"]}]
    text = tokenizer.apply_chat_template(turns, tokenize=False)
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    logs = network(input_ids=torch.tensor([ids])).logits[0].log_softmax(dim=-1)
    start = len(ids) - 1 - len(row["rejected"])  # before the token that closes the turn
    return [
        sum(logs[start + at - 1, ids[start + at]].item() for at in range(segment["start"], segment["end"]))
        for segment in row["rejected_segments"]
    ]


@pytest.mark.parametrize("method", ["sft", "dpo_2d"])
def test_the_parts_of_a_step_change_nothing(method: str, decoder_directory: Path, tmp_path: Path) -> None:
    whole, parts = (losses(aligned(tmp_path / str(n), decoder_directory, method, micro_tokens=n)) for n in (0, 80))
    np.testing.assert_allclose(whole, parts, rtol=1e-4)


def test_what_memory_cannot_hold_is_halved(
    decoder_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calm = losses(aligned(tmp_path / "calm", decoder_directory))
    small_memory(monkeypatch, items=4)
    tight = losses(aligned(tmp_path / "tight", decoder_directory))
    assert [e["micro_tokens"] for e in read_events(tmp_path / "tight") if e["event"] == "out_of_memory"]
    np.testing.assert_allclose(tight, calm, rtol=1e-4)


def test_memory_for_nothing_at_all_is_said(
    decoder_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_memory(monkeypatch, items=1)
    with pytest.raises(OutOfMemory, match="lower max_length or micro_tokens"):
        aligned(tmp_path / "run", decoder_directory)


def small_memory(monkeypatch: pytest.MonkeyPatch, *, items: int) -> None:
    whole = Policy.log_probs

    def limited(self: Policy, groups: Any) -> torch.Tensor:
        if torch.is_grad_enabled() and sum(map(len, groups)) > items:
            raise torch.OutOfMemoryError
        return whole(self, groups)

    monkeypatch.setattr(Policy, "log_probs", limited)


def test_a_loss_that_is_no_number_is_said(decoder_directory: Path, tmp_path: Path) -> None:
    with pytest.raises(Diverged, match="lower learning_rate or beta"):
        aligned(tmp_path / "run", decoder_directory, learning_rate=10.0, max_grad_norm=1e9, epochs=9, beta=1e6)


def test_activation_checkpointing_changes_nothing(decoder_directory: Path, tmp_path: Path) -> None:
    plain, thrifty = (
        losses(aligned(tmp_path / str(on), decoder_directory, activation_checkpointing=on)) for on in (False, True)
    )
    np.testing.assert_allclose(plain, thrifty, rtol=1e-5)


def test_adapters_are_trained_and_merged(decoder_directory: Path, tmp_path: Path) -> None:
    metrics = aligned(tmp_path / "run", decoder_directory, lora_rank=4, epochs=2, learning_rate=5e-3)
    assert metrics["train"]["margin"] > 0
    ours, theirs = weights(tmp_path / "run"), load_file(decoder_directory / "model.safetensors")
    assert set(ours) == set(theirs)
    changed = {name for name in ours if not torch.equal(ours[name], theirs[name])}
    assert changed == {name for name in ours if "_proj" in name}


def test_bf16_learns_nearly_the_same(decoder_directory: Path, tmp_path: Path) -> None:
    exact, rounded = (aligned(tmp_path / name, decoder_directory, precision=name) for name in ("float32", "bfloat16"))
    assert rounded["training"]["precision"] == "bfloat16"
    assert weights(tmp_path / "bfloat16")["lm_head.weight"].dtype == torch.float32
    np.testing.assert_allclose(losses(rounded), losses(exact), atol=0.05)
    assert losses(rounded) != losses(exact)


def test_a_reference_of_its_own_is_used(decoder_directory: Path, tmp_path: Path) -> None:
    aligned(tmp_path / "tuned", decoder_directory, "sft", epochs=4)
    policy = tmp_path / "tuned" / "policy"
    own, other = (
        losses(aligned(tmp_path / str(n), policy, "dpo", **given))[0]
        for n, given in enumerate(({}, {"reference": str(decoder_directory)}))
    )
    assert own == pytest.approx(np.log(2), abs=1e-4)
    assert other < own - 1e-3


def test_runs_share_the_stored_reference(decoder_directory: Path, tmp_path: Path) -> None:
    for name, method in (("one", "dpo"), ("two", "dpo_2d")):
        aligned(tmp_path / name, decoder_directory, method, reference_folder=str(tmp_path / "shared"))
    assert next(event["event"] for event in read_events(tmp_path / "two")) == "reference_read"


def test_the_same_seed_gives_the_same_policy(decoder_directory: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        aligned(tmp_path / name, decoder_directory, epochs=2)
    one, two = weights(tmp_path / "one"), weights(tmp_path / "two")
    assert all(torch.equal(one[name], two[name]) for name in one)


class Stopped(Exception):
    pass


@pytest.mark.parametrize("given", [{}, {"lora_rank": 2, "activation_checkpointing": True}])
def test_a_run_that_was_stopped_goes_on_to_the_same_bits(
    given: dict[str, Any], decoder_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {**given, "epochs": 2, "checkpoint_steps": 2}
    whole = aligned(tmp_path / "whole", decoder_directory, **given)
    broken = make_alignment(tmp_path / "broken", decoder_directory, "dpo_2d", **given)
    with monkeypatch.context() as patched:
        stop_at(patched, 5)
        with pytest.raises(Stopped):
            align(broken)
    align(broken)
    assert next(event["step"] for event in read_events(broken) if event["event"] == "resumed") == 4
    assert losses(read_json(broken / "metrics.json")) == losses(whole)
    ours, theirs = weights(broken), weights(tmp_path / "whole")
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


def stop_at(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    take_step = training.take_step

    def stopping(run: Any, state: Any, *others: Any, **more: Any) -> None:
        if state.place.step == step:
            raise Stopped
        take_step(run, state, *others, **more)

    monkeypatch.setattr(training, "take_step", stopping)


def test_a_checkpoint_of_other_rows_is_not_resumed(
    decoder_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_alignment(tmp_path / "run", decoder_directory, "dpo_2d", checkpoint_steps=1)
    with monkeypatch.context() as patched:
        stop_at(patched, 2)
        with pytest.raises(Stopped):
            align(run)
    write_jsonl(run / "rows.jsonl", make_judged_rows(16, seed=1))
    align(run)
    refused = [event for event in read_events(run) if event["event"] == "checkpoint_refused"]
    assert "another configuration" in refused[0]["reason"]


def test_a_checkpoint_against_another_reference_is_not_resumed(
    decoder_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    aligned(tmp_path / "other", decoder_directory, "sft")
    run = make_alignment(tmp_path / "run", decoder_directory, "dpo", checkpoint_steps=1)
    with monkeypatch.context() as patched:
        stop_at(patched, 2)
        with pytest.raises(Stopped):
            align(run)
    config = {**read_json(run / "config.json"), "reference": str(tmp_path / "other" / "policy")}
    (run / "config.json").write_text(json.dumps(config), encoding="utf-8")
    align(run)
    assert "checkpoint_refused" in [event["event"] for event in read_events(run)]


def test_what_is_done_is_not_done_again(decoder_directory: Path, tmp_path: Path) -> None:
    aligned(tmp_path / "run", decoder_directory)
    shutil.rmtree(tmp_path / "run" / "reference")
    align(tmp_path / "run")
    assert not (tmp_path / "run" / "reference").exists()


def test_held_out_rows_may_be_a_file_of_their_own(decoder_directory: Path, tmp_path: Path) -> None:
    others = write_jsonl(tmp_path / "others.jsonl", renumbered(make_judged_rows(5, seed=2), 100))
    metrics = aligned(tmp_path / "run", decoder_directory, held_out_data=str(others))
    assert (metrics["data"]["train"]["rows"], metrics["held_out"]["pairs"]) == (12, 5)


def renumbered(rows: list[dict[str, Any]], first: int) -> list[dict[str, Any]]:
    turns = [[{"role": "user", "content": f"Q{first + number}?"}] for number in range(len(rows))]
    return [{**row, "conversation": turn} for row, turn in zip(rows, turns, strict=True)]


def test_a_held_out_prompt_that_is_trained_on_is_refused(decoder_directory: Path, tmp_path: Path) -> None:
    others = write_jsonl(tmp_path / "others.jsonl", make_judged_rows(1))
    with pytest.raises(LeakedPrompt, match=r"as others.jsonl, line 1 has that of rows.jsonl, line 1: leave them out"):
        aligned(tmp_path / "run", decoder_directory, held_out_data=str(others))


def test_a_single_prompt_that_is_held_out_leaves_nothing(decoder_directory: Path, tmp_path: Path) -> None:
    with pytest.raises(NoRows, match="lower held_out_share"):
        aligned(tmp_path / "run", decoder_directory, rows=make_judged_rows(1), held_out_share=0.9)


def test_bad_input_of_the_command_is_one_sentence_and_code_2(
    decoder_directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_alignment(tmp_path / "run", decoder_directory, "dpo", rows=[{"chosen": "a"}])
    assert main(["align", str(run)]) == 2
    assert capsys.readouterr().err == "rows.jsonl, line 1: the row lacks conversation\n"
    assert read_events(run)[-1]["name"] == "BadRow"


@pytest.mark.slow
@pytest.mark.parametrize("given", [{"lora_rank": 0}, {"lora_rank": 2, "activation_checkpointing": True}])
def test_two_processes_learn_what_one_does(given: dict[str, Any], decoder_directory: Path, tmp_path: Path) -> None:
    given = {**given, "micro_tokens": 80, "samples": 2}
    runs = [
        make_alignment(tmp_path / str(count), decoder_directory, "dpo_2d", processes=count, **given) for count in (1, 2)
    ]
    align(runs[0])
    command = [sys.executable, "-m", "rewards.learning", "align", str(runs[1])]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    alone, together = (read_json(run / "metrics.json") for run in runs)
    assert [metrics["training"]["processes"] for metrics in (alone, together)] == [1, 2]
    np.testing.assert_allclose(losses(alone), losses(together), atol=1e-5)
    assert together["train"]["margin"] == pytest.approx(alone["train"]["margin"], abs=1e-4)
    for name, tensor in weights(runs[0]).items():
        torch.testing.assert_close(weights(runs[1])[name], tensor, atol=1e-4, rtol=0)
