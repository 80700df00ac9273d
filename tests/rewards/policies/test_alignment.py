"""Policy runs from snapshot to judgement. Torch is loaded once, in the tests' own process."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.utils import timezone

from annotator.background import heartbeats
from annotator.background.heartbeats import QueueHealth
from annotator.models import Project
from rewards import runs, tasks, trainer_process
from rewards.learning.aligning.align import align
from rewards.learning.aligning.answering import answer
from rewards.models import Policy, RunState, Snapshot, TrainingRun
from rewards.policies import alignment, judging, policy_runs, registry
from tests.rewards.learning.aligning.builders import TEMPLATE
from tests.rewards.learning.conftest import SHAPE, make_tokenizer
from tests.rewards.policies.snapshots import make_champion, make_snapshot

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
        runs.write(run, heartbeat_at=timezone.now(), **trainer_process._progress(folder))

    for module in (alignment, judging):
        monkeypatch.setattr(module, "supervise", supervise)
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
    policy = run.policy
    assert (policy.method, policy.version, policy.judge) == (method, 1, champion)
    assert policy.judgement["prompts"] == 12
    assert policy.state in (Policy.State.OFFERED, Policy.State.REFUSED)
    assert registry.verify(policy) == []
    assert run.metrics["rows"] == {"tasks": 8, "rows": 8, "left_out": {}}
