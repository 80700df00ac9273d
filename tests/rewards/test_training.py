"""One run from snapshot to verdict, with a real trainer."""

import pytest

from annotator import workers
from annotator.workers import QueueHealth
from rewards import promotion, registry, retraining, tasks
from rewards.models import RewardModel, RunState
from tests.builders import NOW
from tests.rewards.labelled import labelled_project

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("training")]
CONFIG = {"epochs": 0, "threads": 1, "batch_tokens": 512, "seed": 5}


def test_a_better_model_waits_where_a_manager_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "listening", lambda: dict.fromkeys(workers.QUEUES, QueueHealth(1, 0.5)))
    project = labelled_project(tasks=60, training_config=CONFIG, promote_automatically=False)
    run = retraining.request(project, reason="a test")
    tasks.train(run.pk)
    run.refresh_from_db()
    model = RewardModel.objects.get(run=run)
    assert (run.state, run.finished_at, model.is_champion) == (RunState.AWAITING_PROMOTION, None, False), run.error
    assert run.verdict["promote"]
    assert (run.config_hash, run.seed) == (run.metrics["config_hash"], run.metrics["seed"])
    assert run.metrics["learning_curve"]["outlook"]["more"] == 1000
    assert (run.directory() / "expected.jsonl").is_file()
    assert registry.verify(model) == []
    promotion.promote(model, now=NOW)
    run.refresh_from_db()
    assert (run.state, run.finished_at) == (RunState.PROMOTED, NOW)
