"""What is kept of a trainer's words, and how launchers start it, with other programs in its place."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from annotator.infrastructure.storage.hidden_paths import without_places
from annotator.launch import environment
from annotator.models import Project
from rewards.models import RunState, TrainingRun
from rewards.trainer.owned_runs import TrainerKilled
from rewards.trainer.trainer_process import TrainerFailed, command, supervise

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


def test_the_losses_outlive_the_progress_of_the_champion_s_evaluation(
    run: TrainingRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/true")
    step, predicted = {"event": "step", "step": 1, "loss": 0.5}, {"event": "predict", "done": 1, "total": 9}
    for verb, event in (("train", step), ("evaluate", predicted)):
        (tmp_path / verb).mkdir()
        (tmp_path / verb / "progress.jsonl").write_text(json.dumps(event) + "\n")
        supervise(run, verb, tmp_path / verb)
    run.refresh_from_db()
    assert (run.losses, run.progress) == ([step], predicted)


@pytest.fixture
def run(project: Project) -> TrainingRun:
    return TrainingRun.objects.create(project=project, reason="a test", state=RunState.TRAINING, attempt=1)


def launched_by(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str, words: str = "{command}") -> None:
    """Sets a launcher whose script is /bin/sh's."""
    launcher = tmp_path / "launcher"
    launcher.write_text(f"#!/bin/sh\n{script}\n")
    launcher.chmod(0o755)
    monkeypatch.setattr(settings, "TRAIN_LAUNCHER", (str(launcher), *words.split()))


def test_a_launcher_gets_the_trainer_s_command_word_by_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "TRAIN_LAUNCHER", ("env", "A=b c", "{command}", "--name={stage}", "{directory}/log"))
    words = command("train", tmp_path)
    trainer = [sys.executable, "-m", "rewards.learning", "train", str(tmp_path)]
    own = [sys.executable, "-m", "rewards.trainer.launcher_process"]
    assert words == [*own, "env", "A=b c", *trainer, "--name=train", f"{tmp_path}/log"]


def test_a_launcher_s_words_and_refusal_are_the_run_s(
    run: TrainingRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launched_by(monkeypatch, tmp_path, 'echo "$@"', "{stage}; {directory}")
    supervise(run, "train", tmp_path)
    run.refresh_from_db()
    assert run.log == f"train; {without_places(str(tmp_path))}\n"
    launched_by(monkeypatch, tmp_path, "echo no such partition; exit 2")
    with pytest.raises(TrainerFailed, match="The trainer refused: no such partition"):
        supervise(run, "train", tmp_path)


def test_a_launcher_that_is_killed_is_told_from_one_that_fails(
    run: TrainingRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launched_by(monkeypatch, tmp_path, "kill -9 $$")
    with pytest.raises(TrainerKilled):
        supervise(run, "train", tmp_path)
    launched_by(monkeypatch, tmp_path, "kill -TERM $$")
    with pytest.raises(TrainerFailed, match="SIGTERM"):
        supervise(run, "train", tmp_path)


def test_a_launcher_that_is_not_there_is_named(
    run: TrainingRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "TRAIN_LAUNCHER", ("no-such-program", "{command}"))
    with pytest.raises(TrainerFailed, match="cannot run no-such-program"):
        supervise(run, "train", tmp_path)


def test_a_stopped_run_ends_its_launcher_and_what_that_has_started(
    run: TrainingRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launched_by(monkeypatch, tmp_path, f"echo $$ > {tmp_path}/pid; sleep 100")
    monkeypatch.setattr(settings, "RUN_HEARTBEAT_SECONDS", 1)
    monkeypatch.setattr("rewards.trainer.trainer_process._refuse_overtime", stop_once_there(tmp_path / "pid"))
    with pytest.raises(ZeroDivisionError):
        supervise(run, "train", tmp_path)
    assert is_gone(int((tmp_path / "pid").read_text()))


def stop_once_there(path: Path) -> Callable[[TrainingRun], None]:
    def stop(run: TrainingRun) -> None:
        if path.exists() and path.read_text().strip():
            raise ZeroDivisionError

    return stop


def test_a_launcher_ends_with_its_worker(tmp_path: Path) -> None:
    script = f"echo $$ > {tmp_path}/pid; exec sleep 100"
    launcher = "[sys.executable, '-m', 'rewards.trainer.launcher_process', *sys.argv[1:]]"
    worker = f"import subprocess, sys; subprocess.run({launcher})"
    with subprocess.Popen([sys.executable, "-c", worker, "/bin/sh", "-c", script]) as process:
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
    assert is_gone(int((tmp_path / "pid").read_text()))


def is_gone(process: int) -> bool:
    """Returns whether the process ends within ten seconds."""
    for _ in range(100):
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return True
        if "State:\tZ" in Path(f"/proc/{process}/status").read_text():
            return True
        time.sleep(0.1)
    return False


@pytest.mark.parametrize("value", ["", "local", " local "])
def test_by_default_nothing_launches(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAIN_LAUNCHER", value)
    assert environment.launcher("TRAIN_LAUNCHER") == ()


def test_a_launcher_is_words_and_never_a_shell_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAIN_LAUNCHER", "srun --comment='a; b' --env={\"X\":1} {command} > $HOME")
    words = ("srun", "--comment=a; b", "--env={X:1}", "{command}", ">", "$HOME")
    assert environment.launcher("TRAIN_LAUNCHER") == words


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("srun", "write `local`, or a command with {command}"),
        ("srun {directory}", "write `local`, or a command with {command}"),
        ("srun '{command}", "cannot be divided into words"),
        ("srun {gpus} {command}", "has {gpus}: the placeholders are {command}, {stage}, {directory}"),
        ("sh -c 'exec {command}'", "must be a word by itself"),
        ("{command}", "must begin with the program that launches"),
    ],
)
def test_a_bad_launcher_stops_the_start(value: str, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAIN_LAUNCHER", value)
    with pytest.raises(ImproperlyConfigured) as refused:
        environment.launcher("TRAIN_LAUNCHER")
    assert says in str(refused.value)
