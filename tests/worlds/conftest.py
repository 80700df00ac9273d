"""Workers that are there, and a trainer that works in this process: a process of its own would take seconds each."""

from pathlib import Path

import pytest
from django.conf import LazySettings

from annotator.infrastructure.background import heartbeats
from annotator.infrastructure.background.heartbeats import QueueHealth
from rewards.models import TrainingRun
from rewards.runs import training
from tests.rewards.learning.conftest import encoder_directory  # noqa: F401
from tests.worlds.building import LEARNT


@pytest.fixture(autouse=True)
def _workers(monkeypatch: pytest.MonkeyPatch, settings: LazySettings, request: pytest.FixtureRequest) -> None:
    if "world" in request.fixturenames and request.getfixturevalue("world").state in LEARNT:
        settings.REWARD_BACKBONES = {"minilm": str(request.getfixturevalue("encoder_directory"))}
    monkeypatch.setattr(heartbeats, "listening", lambda: dict.fromkeys(heartbeats.QUEUES, QueueHealth(1, 0.5)))
    monkeypatch.setattr(training, "supervise", _supervise)


def _supervise(run: TrainingRun, verb: str, folder: Path) -> None:
    from rewards.learning.__main__ import imported  # noqa: PLC0415  it imports torch

    imported(verb)(folder)
