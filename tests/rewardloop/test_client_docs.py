"""Every example of docs/client.md runs as it stands, against the web and workers as they are started."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings as django_settings
from django.contrib.auth.hashers import PBKDF2PasswordHasher

from rewardloop.command_line.door import parser
from tests.builders import make_rubrics, make_user
from tests.celery_workers import worker
from tests.web import web

ROOT = Path(django_settings.BASE_DIR)
PASSWORD = "only-for-these-examples"


def page() -> str:
    return (ROOT / "docs" / "client.md").read_text()


def examples(language: str) -> str:
    return "\n".join(re.findall(rf"```{language}\n(.*?)```", page(), re.DOTALL))


def test_the_page_has_every_verb() -> None:
    listed = {
        word for cell in re.findall(r"^\| (`[^|]*)\|", page(), re.MULTILINE) for word in re.findall(r"`(\w+)", cell)
    }
    (verbs,) = (action.choices for action in parser()._actions if action.dest == "verb")
    assert set(verbs or ()) <= listed


@pytest.fixture
def variables(transactional_db: None, tmp_path: Path) -> Iterator[dict[str, str]]:
    """The product with its demo accounts, and the environment of the terminal beside it."""
    make_rubrics()
    for name in ("manager", "alice", "bob", "erin"):
        user = make_user(name, is_staff=name == "manager")
        # The web has the real hashers, the tests a fast one.
        user.password = PBKDF2PasswordHasher().encode(PASSWORD, "salt")
        user.save()
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "rewardloop").write_text(f'#!/bin/sh\nexec {sys.executable} -m rewardloop "$@"\n')
    (programs / "rewardloop").chmod(0o755)
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    with web(tmp_path) as server, worker("light", tmp_path), worker("train", tmp_path), worker("score", tmp_path):
        yield {
            "PATH": path,
            "HOME": str(tmp_path),
            "PYTHONPATH": str(ROOT),
            "REWARDLOOP_URL": f"http://127.0.0.1:{server.port}",
            "DEMO_PASSWORD": PASSWORD,
        }


def run(words: list[str], folder: Path, variables: dict[str, str]) -> list[str]:
    done = subprocess.run(words, cwd=folder, env=variables, capture_output=True, text=True, check=False, timeout=400)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout.splitlines()


@pytest.mark.slow
@pytest.mark.xdist_group("training")
def test_the_examples_run(variables: dict[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    said = run([sys.executable, "-c", examples("python")], folder, variables)
    assert "60 new, 0 known" in said
    assert any(line.startswith("line 61: ") for line in said)
    assert "erin has finished: all_done" in said
    assert any(line.startswith("120 labels") for line in said)
    assert {"labels.parquet", "sums.tar", "model.tar"} <= {file.name for file in folder.iterdir()}
    said = run(["bash", "-euo", "pipefail", "-c", examples("bash")], folder, variables)
    assert "more.jsonl: 1 new, 0 known, 0 refused" in said
    assert (folder / "annotations.csv").stat().st_size > 0
    assert not (tmp_path / ".config" / "rewardloop" / "login.json").exists()
