"""The commands as processes: what they return, what they print, and what ends them."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rewards.learning.__main__ import main
from tests.rewards.learning.builders import make_run, read_events

COMMAND = [sys.executable, "-m", "rewards.learning"]
SPAWN = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-m", "rewards.learning", "train", sys.argv[1]], stdout=subprocess.DEVNULL)
print(child.pid, flush=True)
time.sleep(60)
"""


def test_bad_input_is_one_sentence_and_code_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "config.json").write_text('{"snapshot": "/nowhere"}', encoding="utf-8")
    assert subprocess_free_main(["train", str(tmp_path)]) == 2
    assert capsys.readouterr().err == "there is no /nowhere/manifest.json\n"
    assert read_events(tmp_path)[-1]["name"] == "MissingFile"


def test_only_existing_commands_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "{train,evaluate,score,reward,align}" in capsys.readouterr().out


@pytest.mark.slow
def test_sigterm_ends_it_with_a_code_of_its_own(encoder_directory: Path, tmp_path: Path) -> None:
    run = make_run(tmp_path, backbone=encoder_directory, tasks=200, epochs=10_000, patience=10_000)
    process = subprocess.Popen([*COMMAND, "train", str(run)], stdout=subprocess.DEVNULL)
    wait_for_step(run)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=30) == 143


@pytest.mark.slow
def test_it_ends_when_its_parent_is_killed(encoder_directory: Path, tmp_path: Path) -> None:
    run = make_run(tmp_path, backbone=encoder_directory, tasks=200, epochs=10_000, patience=10_000)
    with subprocess.Popen([sys.executable, "-c", SPAWN, str(run)], stdout=subprocess.PIPE) as parent:
        assert parent.stdout
        child = Path("/proc", parent.stdout.readline().decode().strip())
        wait_for_step(run)
        parent.kill()
    wait_until_gone(child)


@pytest.mark.slow
def test_several_processes_end_with_the_one_that_started_them(encoder_directory: Path, tmp_path: Path) -> None:
    given = {"epochs": 10_000, "patience": 10_000, "processes": 2, "device": "cpu"}
    run = make_run(tmp_path, backbone=encoder_directory, tasks=200, **given)
    with subprocess.Popen(
        [*COMMAND, "train", str(run)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        wait_for_step(run)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="utf-8").split()
        process.kill()
    assert len(children) == 2
    for child in children:
        wait_until_gone(Path("/proc", child))


@pytest.mark.slow
def test_bad_input_of_several_processes_is_said_too(encoder_directory: Path, tmp_path: Path) -> None:
    run = make_run(tmp_path, backbone=encoder_directory, processes=2, device="cpu")
    (tmp_path / "snapshot" / "train.jsonl").write_text("", encoding="utf-8")
    done = subprocess.run([*COMMAND, "train", str(run)], check=False, capture_output=True, text=True)
    assert done.returncode == 2
    assert "not the file that the manifest describes" in done.stderr


def subprocess_free_main(arguments: list[str]) -> int:
    former = signal.getsignal(signal.SIGTERM)
    try:
        return main(arguments)
    finally:
        signal.signal(signal.SIGTERM, former)


def wait_for_step(run: Path) -> None:
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline:
        if (run / "progress.jsonl").exists() and '"step"' in (run / "progress.jsonl").read_text(encoding="utf-8"):
            return
        time.sleep(0.2)
    pytest.fail("no step within three minutes")


def wait_until_gone(process: Path) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if not process.exists() or "State:\tZ" in (process / "status").read_text(encoding="utf-8"):
            return
        time.sleep(0.2)
    pytest.fail("the orphan still runs")
