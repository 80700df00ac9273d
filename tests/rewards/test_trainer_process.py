"""What is kept of a trainer's words, with other programs in its place."""

import sys
from pathlib import Path

import pytest

from annotator.models import Project
from annotator.storage.hidden_paths import without_places
from rewards.models import RunState, TrainingRun
from rewards.trainer_process import supervise

pytestmark = pytest.mark.django_db


def test_the_trainer_s_log_outlives_the_evaluation_of_the_champion(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = TrainingRun.objects.create(project=project, reason="a test", state=RunState.TRAINING, attempt=1)
    for verb, program in (("train", "/bin/echo"), ("evaluate", "/bin/true")):
        monkeypatch.setattr(sys, "executable", program)
        supervise(run, verb, tmp_path)
    run.refresh_from_db()
    assert run.log == f"-m rewards.learning train {without_places(str(tmp_path))}\n"
