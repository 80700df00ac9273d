"""The command line of an installed Rewardloop."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from annotator.launch import command
from annotator.version import VERSION


@pytest.fixture
def replaced_by(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The command lines that would take the process's place."""
    seen: list[list[str]] = []
    monkeypatch.setattr(os, "execv", lambda _program, words: seen.append(words))
    monkeypatch.setenv("VAR_DIR", "/somewhere")
    return seen


def given(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["rewardloop", *words])
    return command.main()


def test_it_knows_its_version(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert given(monkeypatch, "--version") == 0
    assert capsys.readouterr().out == f"rewardloop {VERSION}\n"


def test_an_unknown_word_is_answered_with_those_it_knows(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert given(monkeypatch, "fly") == 2
    assert "  manage " in capsys.readouterr().err


def test_arguments_are_handed_on(monkeypatch: pytest.MonkeyPatch, replaced_by: list[list[str]]) -> None:
    given(monkeypatch, "manage", "import_tasks", "mine", "tasks.jsonl")
    assert replaced_by[0][-4:] == ["annotator.launch.manage", "import_tasks", "mine", "tasks.jsonl"]


def test_a_worker_is_celerys(monkeypatch: pytest.MonkeyPatch, replaced_by: list[list[str]]) -> None:
    given(monkeypatch, "worker", "-Q", "train")
    assert replaced_by[0][-6:] == ["celery", "-A", "annotator", "worker", "-Q", "train"]


def test_state_lies_where_the_command_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, replaced_by: list[list[str]]
) -> None:
    monkeypatch.delenv("VAR_DIR")
    monkeypatch.chdir(tmp_path)
    given(monkeypatch, "run")
    assert os.environ["VAR_DIR"] == str(tmp_path / "var")


def test_a_folder_in_which_it_is_given_shadows_nothing(tmp_path: Path) -> None:
    (tmp_path / "django.py").write_text("raise SystemExit('shadowed')\n")
    line = command.command_line("manage", ["version"])
    environment = {**os.environ, "PYTHONPATH": str(Path(command.__file__).parents[2])}
    done = subprocess.run(line, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("5."), done.stderr
