"""Policy runs from snapshot to judgement. Torch is loaded once, in the tests' own process."""

import errno
import json
import math
import os
import shutil
import signal
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.utils import timezone

from annotator.infrastructure.background import heartbeats
from annotator.infrastructure.background.heartbeats import QueueHealth
from annotator.models import Project
from rewards import tasks
from rewards.learning.aligning.align import align
from rewards.learning.aligning.answering import answer
from rewards.learning.train import train
from rewards.models import Policy, RewardModel, RunState, Snapshot, TrainingRun
from rewards.policies import alignment, policy_registry, policy_runs
from rewards.reasons import in_words
from rewards.registry import erasure
from rewards.runs import runs
from rewards.trainer import owned_runs, trainer_process
from tests.celery_workers import wait_for, worker
from tests.rewards.learning.aligning.builders import TEMPLATE
from tests.rewards.learning.builders import make_run
from tests.rewards.learning.conftest import SHAPE, make_tokenizer
from tests.rewards.policies.snapshots import make_champion, make_snapshot
from tests.rewards.runs.test_kills import trainer_of

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("policies")]
CONFIG = {"policy": "tiny", "threads": 1, "device": "cpu", "learning_rate": 0.01, "batch_size": 4, "warmup_steps": 0}
CONFIG |= {"sample_tokens": 6, "held_out_share": 0.25, "max_length": 64}
Stage = Callable[[Path], None]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama of two layers with random weights."""
    directory = tmp_path_factory.mktemp("tiny")
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = make_tokenizer(pair=False)
    tokenizer.chat_template = TEMPLATE
    LlamaForCausalLM(LlamaConfig(vocab_size=len(tokenizer), **SHAPE)).save_pretrained(directory)
    tokenizer.save_pretrained(directory)
    return directory


@pytest.fixture(autouse=True)
def _listening(monkeypatch: pytest.MonkeyPatch, settings: LazySettings, tiny: Path) -> None:
    monkeypatch.setattr(heartbeats, "listening", lambda: dict.fromkeys(heartbeats.QUEUES, QueueHealth(1, 0.5)))
    settings.POLICY_BASES = {"tiny": str(tiny)}


@pytest.fixture
def stages(monkeypatch: pytest.MonkeyPatch) -> dict[str, Stage]:
    """What runs in place of the processes; the champion prefers answers with more of the letter a."""
    by_name: dict[str, Stage] = {"align": align, "answer": answer, "score": prefer_a}

    def supervise(run: TrainingRun, verb: str, folder: Path) -> None:
        by_name[verb](folder)
        owned_runs.write(run, heartbeat_at=timezone.now(), **trainer_process._progress(folder))

    monkeypatch.setattr(alignment, "supervise", supervise)
    return by_name


def prefer_a(folder: Path) -> None:
    items = [json.loads(line) for line in (folder / "items.jsonl").read_text().splitlines()]
    scored = [{"id": item["id"], "reward": float(item["response"].count("a"))} for item in items]
    (folder / "scores.jsonl").write_text("".join(json.dumps(row) + "\n" for row in scored))


def aligned(project: Project, snapshot: Snapshot, method: str = "dpo_2d", **config: Any) -> TrainingRun:
    run = policy_runs.request(
        project, reason="a test", snapshot=snapshot, config={**CONFIG, "method": method, **config}
    )
    tasks.train(run.pk)
    run.refresh_from_db()
    return run


@pytest.mark.parametrize("method", ["sft", "steerlm", "dpo", "dpo_1d", "dpo_2d"])
def test_each_method_makes_a_policy_that_the_champion_judges(
    project: Project, stages: dict[str, Stage], method: str
) -> None:
    snapshot = make_snapshot(project)
    champion = make_champion(project, snapshot)
    run = aligned(project, snapshot, method)
    assert run.state == RunState.DONE, run.error
    assert (run.policy.method, run.policy.version, run.policy.judge) == (method, 1, champion)
    assert run.policy.judgement["prompts"] == 12
    assert run.policy.state in (Policy.State.OFFERED, Policy.State.REFUSED)
    assert run.metrics["rows"] == {"tasks": 8, "rows": 8, "left_out": {}}
    assert policy_registry.verify(run.policy) == []


def test_a_policy_that_has_learnt_nothing_draws_with_its_base(project: Project, stages: dict[str, Stage]) -> None:
    snapshot = make_snapshot(project)
    make_champion(project, snapshot)
    policy = aligned(project, snapshot, epochs=0).policy
    judgement = policy.judgement
    assert (judgement["win_rate"], judgement["ties"], judgement["kl_per_token"]) == (0.5, 12, 0)
    assert judgement["length_controlled"] == 0.5
    assert judgement["tokens"]["policy"] == judgement["tokens"]["base"]
    assert policy.state == Policy.State.REFUSED


def test_a_run_keeps_no_texts_beside_its_snapshot(project: Project, stages: dict[str, Stage]) -> None:
    snapshot = make_snapshot(project)
    make_champion(project, snapshot)
    run = aligned(project, snapshot)
    assert [path for path in run.directory().rglob("*.json*") if "Question" in path.read_text()] == []


def test_rewards_that_are_no_numbers_refuse_the_policy(project: Project, stages: dict[str, Stage]) -> None:
    def lost(folder: Path) -> None:
        items = [json.loads(line) for line in (folder / "items.jsonl").read_text().splitlines()]
        rows = [{"id": item["id"], "reward": math.nan} for item in items]
        (folder / "scores.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    stages["score"] = lost
    snapshot = make_snapshot(project)
    make_champion(project, snapshot)
    policy = aligned(project, snapshot).policy
    assert (policy.state, policy.judgement["reward"]) == (Policy.State.REFUSED, {"policy": None, "base": None})


def test_without_a_champion_the_policy_stays_a_candidate_and_says_why(
    project: Project, stages: dict[str, Stage]
) -> None:
    del stages["answer"]
    policy = aligned(project, make_snapshot(project)).policy
    assert (policy.state, policy.judge, policy.judgement) == (Policy.State.CANDIDATE, None, {})
    assert "the project has no champion yet" in in_words(policy.reason)


def test_prompts_that_the_champion_has_learnt_judge_nobody(project: Project, stages: dict[str, Stage]) -> None:
    """It has learnt 18 of the 20: a larger held-out part took prompts from its train part."""
    del stages["answer"]
    snapshot = make_snapshot(project)
    champion = make_champion(project, make_snapshot(project, train=18, validation=2))
    assert len(alignment.held_out_prompts(snapshot, champion)) == 2
    policy = aligned(project, snapshot).policy
    assert policy.state == Policy.State.CANDIDATE
    assert "only 2 held-out prompts are new to the champion too" in in_words(policy.reason)


def test_a_champion_of_which_nobody_knows_what_it_has_learnt_judges_nobody(project: Project) -> None:
    snapshot = make_snapshot(project)
    assert alignment.held_out_prompts(snapshot, make_champion(project, None)) == []


def test_prompts_are_answered_once_and_no_more_than_the_limit(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = make_snapshot(project)
    champion = make_champion(project, snapshot)
    monkeypatch.setattr(alignment, "MOST_PROMPTS", 5)
    prompts = [row["id"] for row in alignment.held_out_prompts(snapshot, champion)]
    assert len(set(prompts)) == 5
    assert prompts == [row["id"] for row in alignment.held_out_prompts(snapshot, champion)]


def test_a_method_whose_scores_are_missing_fails_and_says_what_to_do(
    project: Project, stages: dict[str, Stage]
) -> None:
    run = aligned(project, make_snapshot(project, aspects=[]), "dpo_2d")
    assert run.state == RunState.FAILED
    assert "learns from scored segments, and the snapshot has none" in run.error


def test_a_full_disk_fails_the_run_with_words(project: Project, stages: dict[str, Stage]) -> None:
    def full(folder: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    stages["align"] = full
    run = aligned(project, make_snapshot(project))
    assert (run.state, run.error[:17]) == (RunState.FAILED, "The disk is full.")


def test_a_run_that_is_cancelled_while_it_is_judged_makes_no_policy(project: Project, stages: dict[str, Stage]) -> None:
    def cancel(folder: Path) -> None:
        runs.cancel(TrainingRun.objects.of_policies().get(), now=timezone.now())

    stages["answer"] = cancel
    snapshot = make_snapshot(project)
    make_champion(project, snapshot)
    assert aligned(project, snapshot).state == RunState.CANCELLED
    assert not Policy.objects.exists()


def test_a_run_that_was_put_down_is_judged_by_the_answers_that_are_there(
    project: Project, stages: dict[str, Stage]
) -> None:
    def killed(folder: Path) -> None:
        raise owned_runs.TrainerKilled("The trainer was killed (signal 9).")

    stages["score"] = killed
    snapshot = make_snapshot(project)
    make_champion(project, snapshot)
    run = aligned(project, snapshot)
    assert (run.state, run.attempt) == (RunState.QUEUED, 1)
    answers = run.directory() / "judging" / "answers.jsonl"
    written = answers.stat().st_mtime_ns
    times: list[int] = []

    def look_and_score(folder: Path) -> None:
        times.append(answers.stat().st_mtime_ns)
        prefer_a(folder)

    stages["score"] = look_and_score
    tasks.train(run.pk)
    run.refresh_from_db()
    assert (run.state, run.attempt, times) == (RunState.DONE, 2, [written])


def test_erasing_a_snapshot_erases_the_policies_that_learnt_from_it(project: Project, stages: dict[str, Stage]) -> None:
    snapshot = make_snapshot(project)
    policy = aligned(project, snapshot).policy
    Snapshot.objects.update(marked_at=timezone.now())
    snapshot.refresh_from_db()
    erasure.erase(snapshot, now=timezone.now())
    assert policy.is_erased()
    assert not policy.directory().exists()
    assert policy_registry.verify(policy) == [
        "The files were erased, because the policy learnt from texts that had to be erased."
    ]


# With a real worker ----------------------------------------------------------------------------------------


def steps_in(run: TrainingRun) -> int:
    """The steps that the aligner has noted."""
    path = run.directory() / "progress.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return max((json.loads(line).get("step", 0) for line in lines if line.endswith("}")), default=0)


def aligner_of(run: TrainingRun) -> int | None:
    return trainer_of(run, stage="align")


@pytest.fixture
def champion(project: Project, tiny: Path, tmp_path: Path) -> RewardModel:
    """A real one: a ridge on the tiny model's features."""
    trained = make_run(tmp_path / "trained", backbone=tiny, epochs=0, threads=1)
    train(trained)
    model = make_champion(project, make_snapshot(project, train=1, validation=2))
    shutil.copytree(trained / "model", model.directory(), dirs_exist_ok=True)
    return model


def test_a_killed_aligner_and_a_killed_worker_cost_no_more_than_the_steps_since_the_last_checkpoint(
    project: Project, champion: RewardModel, tiny: Path, tmp_path: Path
) -> None:
    """The first attempt loses its aligner, the second one its worker; the third one comes to a judgement."""
    bases, snapshot = {"POLICY_BASES": f"tiny={tiny}"}, make_snapshot(project, train=40)
    config = {**CONFIG, "method": "dpo", "epochs": 10, "max_steps": 80, "checkpoint_steps": 4, "held_out_share": 0}
    with worker("train", tmp_path, **bases) as first:
        run = policy_runs.request(project, reason="a test", snapshot=snapshot, config=config)
        wait_for(lambda: steps_in(run) >= 10, what="the first steps")
        os.kill(aligner_of(run) or 0, signal.SIGKILL)
        wait_for(lambda: TrainingRun.objects.get(pk=run.pk).attempt == 2 and aligner_of(run), what="another aligner")
        os.kill(first.pid, signal.SIGKILL)
        wait_for(lambda: aligner_of(run) is None, what="the orphan's end")
    with worker("train", tmp_path, **bases):
        assert runs.recover_lost(now=timezone.now() + timedelta(minutes=5)) == [run]
        wait_for(lambda: TrainingRun.objects.get(pk=run.pk).finished_at, seconds=200, what="the run's end")
    run.refresh_from_db()
    assert (run.state, run.attempt) == (RunState.DONE, 3), run.error
    events = map(json.loads, (run.directory() / "progress.jsonl").read_text().splitlines())
    resumed = [event for event in events if event["event"] == "resumed"]
    assert resumed[0]["step"] >= 10 - 4
    assert run.metrics["training"]["steps"] == 80
    judgement = run.policy.judgement
    assert (run.policy.judge, judgement["prompts"]) == (champion, 12)
    assert judgement["kl_per_token"] > 0
    assert judgement["reward"]["policy"] != judgement["reward"]["base"]
