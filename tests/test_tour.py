"""The README's tour as printed, against the product as `make run` starts it."""

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from annotator.launch import child_processes
from annotator.launch.run import ROOT
from tests.celery_workers import wait_for
from tests.web import free_port

PASSWORD = "only-for-this-tour"
SECONDS = 900
"""Enough for a slow machine, which trains the demo's model before the tour's."""
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("scoring")]


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="rewardloop-tour-") as place:
        Path(place).chmod(0o711)  # ours: PostgreSQL's account has to pass through
        yield Path(place)


@pytest.fixture(scope="module")
def variables(folder: Path) -> Iterator[dict[str, str]]:
    """Starts the product as `make run` does, and gives the environment of the terminal beside it."""
    ours = {name: value for name, value in os.environ.items() if name not in {"DATABASE_URL", "REDIS_URL"}}
    ours |= {"VAR_DIR": str(folder / "var"), "PORT": str(free_port()), "DEMO_PASSWORD": PASSWORD}
    said = folder / "product.log"
    with said.open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "annotator.launch.run"],
            env=ours,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            preexec_fn=child_processes.die_with_parent(signal.SIGTERM),
        )
    try:
        wait_for(lambda: "is ready" in said.read_text(), seconds=SECONDS, what="the product")
        yield ours
    finally:
        process.terminate()
        process.wait(120)


def commands() -> str:
    """The code blocks of the tour, in order."""
    tour = (ROOT / "README.md").read_text().split("## A ten-minute tour")[1].split("\n## ")[0]
    return "\n".join(re.findall(r"```bash\n(.*?)```", tour, re.DOTALL))


@pytest.fixture(scope="module")
def output(folder: Path, variables: dict[str, str]) -> list[str]:
    """The lines that the tour prints. It ends at the first call that the server refuses."""
    (folder / ".venv").symlink_to(sys.prefix)  # the tour is for a terminal in the checkout
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands()],
        env=variables | {"PYTHONPATH": str(ROOT), "HOME": str(folder)},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout.splitlines()


def test_every_response_gets_a_label(output: list[str]) -> None:
    reasons = {"alice": "you_did_all", "bob": "you_did_all", "erin": "all_done"}
    finished = [f"{name} has finished: {reason}" for name, reason in reasons.items()]
    assert output[:5] == ["60 tasks", *finished, "120 labels"]


def test_the_model_of_the_tour_is_promoted(output: list[str]) -> None:
    assert output[5] == "promoted"


def test_the_last_command_scores_the_response(output: list[str]) -> None:
    (correctness,) = re.findall(r"'correctness': ([\d.]+)", output[6])
    assert float(correctness) > 3
