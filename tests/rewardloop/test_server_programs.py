"""The programs of the server, by the command `rewardloop`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rewardloop.command_line import main, server_programs
from rewardloop.version import VERSION


@pytest.fixture
def replaced_by(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The command lines that would take the process's place."""
    seen: list[list[str]] = []

    def execv(_program: str, words: list[str]) -> None:
        seen.append(words)
        raise SystemExit(0)

    monkeypatch.setattr(os, "execv", execv)
    monkeypatch.setenv("VAR_DIR", "/somewhere")
    return seen


def given(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["rewardloop", *words])
    return main()


def test_it_knows_its_version(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        given(monkeypatch, "--version")
    assert capsys.readouterr().out == f"rewardloop {VERSION}\n"


def test_an_unknown_word_is_answered_with_those_it_knows(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        given(monkeypatch, "fly")
    assert "import" in capsys.readouterr().err


def test_arguments_are_handed_on(monkeypatch: pytest.MonkeyPatch, replaced_by: list[list[str]]) -> None:
    with pytest.raises(SystemExit):
        given(monkeypatch, "manage", "import_tasks", "mine", "tasks.jsonl")
    assert replaced_by[0][-4:] == ["annotator.launch.manage", "import_tasks", "mine", "tasks.jsonl"]


def test_a_worker_is_celerys(monkeypatch: pytest.MonkeyPatch, replaced_by: list[list[str]]) -> None:
    with pytest.raises(SystemExit):
        given(monkeypatch, "worker", "-Q", "train")
    assert replaced_by[0][-6:] == ["celery", "-A", "annotator", "worker", "-Q", "train"]


def test_state_lies_where_the_command_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, replaced_by: list[list[str]]
) -> None:
    monkeypatch.delenv("VAR_DIR")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit):
        given(monkeypatch, "run")
    assert os.environ["VAR_DIR"] == str(tmp_path / "var")


def test_a_folder_in_which_it_is_given_shadows_nothing(tmp_path: Path) -> None:
    (tmp_path / "django.py").write_text("raise SystemExit('shadowed')\n")
    line = server_programs.command_line("manage", ["version"])
    environment = {**os.environ, "PYTHONPATH": str(Path(server_programs.__file__).parents[2])}
    done = subprocess.run(line, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("5."), done.stderr


@pytest.mark.parametrize(("name", "extras"), [("manage", "server"), ("run", "server,embedded,learning")])
def test_without_the_servers_packages_it_says_how_to_get_them(
    name: str, extras: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(server_programs, "find_spec", lambda _package: None)
    assert given(monkeypatch, name) == 1
    assert f'pip install "rewardloop[{extras}]"' in capsys.readouterr().err


def test_the_help_lists_the_programs_too(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        given(monkeypatch)
    shown = capsys.readouterr().out
    assert [name for name in (*server_programs.PROGRAMS, "import", "release") if f" {name} " not in shown] == []
