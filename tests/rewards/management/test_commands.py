"""What manage.py offers for the machine half."""

import pytest
from django.core.management import CommandError, call_command

from annotator.infrastructure.background import heartbeats
from annotator.infrastructure.background.heartbeats import QueueHealth
from annotator.models import Project
from rewards.models import TrainingRun
from tests.annotator.models.test_constraints import make_model


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeats, "listening", lambda: {queue: QueueHealth(0, None) for queue in heartbeats.QUEUES})


def test_retrain_without_a_worker_says_how_to_start_one(project: Project, nobody: None) -> None:
    with pytest.raises(CommandError, match="celery -A annotator worker -Q train"):
        call_command("retrain", "talk")
    assert not TrainingRun.objects.exists()


def test_score_without_a_champion_says_so(project: Project, nobody: None) -> None:
    with pytest.raises(CommandError, match="no champion yet"):
        call_command("score", "talk")


def test_score_without_a_worker_says_so(project: Project, nobody: None) -> None:
    make_model(project, 1, is_champion=True)
    with pytest.raises(CommandError, match="queue 'score'"):
        call_command("score", "talk")


def test_evaluate_needs_a_model_and_a_file(project: Project) -> None:
    with pytest.raises(CommandError, match="no reward model 7"):
        call_command("evaluate", "7", "rows.jsonl")
    model = make_model(project, 1)
    with pytest.raises(CommandError, match="no file"):
        call_command("evaluate", str(model.pk), "/nowhere.jsonl")
