"""What stands between a bare machine and a start is said in one sentence."""

import errno
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from annotator.launch import install


def make_distribution(site_packages: Path, name: str, *files: str) -> Path:
    folder = site_packages / f"{name}-1.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "RECORD").write_text("".join(f"{file},sha256=x,1\n" for file in (*files, f"{folder.name}/RECORD")))
    for file in files:
        (site_packages / file).parent.mkdir(exist_ok=True)
        (site_packages / file).touch()
    return folder


def test_a_port_in_use_is_refused_with_its_number() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        with pytest.raises(install.Refused, match=f"Port {port} is in use"):
            install.check_port("127.0.0.1", port)


@pytest.mark.parametrize("port", ["", "eighty", "0", "65536", "-1"])
def test_a_port_that_is_none_is_refused(port: str) -> None:
    with pytest.raises(install.Refused, match="write a number from 1 to 65535"):
        install.check_port("127.0.0.1", port)


def test_a_second_run_is_told_the_first_ones_process(tmp_path: Path) -> None:
    first = install.held(tmp_path)
    with (
        first,
        pytest.raises(install.Refused, match=f"already runs .* process {os.getpid()}"),
        install.held(tmp_path),
    ):
        pass


def test_a_lock_of_a_dead_process_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "run.lock").write_text("999999")
    with install.held(tmp_path):
        assert (tmp_path / "run.lock").read_text() == str(os.getpid())


def test_a_full_disk_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(install.Refused, match="The disk is full"):
        install.check_space(tmp_path, 10**18)


@pytest.mark.parametrize(
    ("number", "words"), [(errno.ENOSPC, "The disk is full"), (errno.EACCES, "may not do that"), (errno.EIO, "error")]
)
def test_the_operating_systems_refusals_are_sentences(number: int, words: str) -> None:
    answer = install.sentence(OSError(number, os.strerror(number), "/somewhere"))
    assert words in answer
    assert "/somewhere" in answer


def test_the_door_answers_a_refusal_with_exit_code_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert install.door(lambda: install.main(["fly"])) == 1
    assert "not 'fly'" in capsys.readouterr().err


def test_a_distribution_that_lost_a_file_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packages = tmp_path / "lib" / "python3.11" / "site-packages"
    make_distribution(packages, "whole", "whole/__init__.py")
    torn = make_distribution(packages, "torn", "torn/__init__.py", "torn/part.py")
    (packages / "torn" / "part.py").unlink()
    monkeypatch.setattr(install, "VENV", tmp_path)
    assert install.damaged_distributions() == [torn]


def test_a_half_written_stamp_counts_as_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(install, "STAMP", tmp_path / "installed.json")
    install.STAMP.write_text('{"digest": "12')
    assert install.read_stamp() == {}


def test_a_backbone_other_than_the_official_one_is_refused(tmp_path: Path) -> None:
    weights = tmp_path / install.BACKBONE_WEIGHTS
    weights.parent.mkdir(parents=True)
    weights.write_bytes(b"other weights")
    with pytest.raises(install.Refused, match="is not the model it should be"):
        install.check_backbone(tmp_path)


def test_every_pin_is_exact_and_names_no_place_or_build() -> None:
    lines = (install.ROOT / "constraints.txt").read_text().splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+==[0-9][0-9a-z.]*", pin) for pin in pins)
    assert "torch==2.13.0" in pins


def test_every_requirement_is_pinned() -> None:
    pinned = {normal(line) for line in (install.ROOT / "constraints.txt").read_text().splitlines()}
    wanted = {normal(line) for line in install.requirements(["dev", "embedded", "hub", "learning"])}
    assert wanted <= pinned


def normal(requirement: str) -> str:
    return re.split(r"[\[=<>~]", requirement)[0].strip().lower().replace("_", "-")


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What would be run, were everything installed."""
    seen: list[list[str]] = []

    def inside(commands: list[list[str]]) -> int:
        seen.extend(commands)
        return 0

    monkeypatch.setattr(install, "install", lambda extras: None)
    monkeypatch.setattr(install, "install_browser", lambda: None)
    monkeypatch.setattr(install, "inside", inside)
    return seen


def test_all_tests_are_run_side_by_side(commands: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    assert install.main(["test"]) == 0
    assert "--numprocesses=3" in commands[0]


def test_arguments_go_to_pytest_as_they_are(commands: list[list[str]]) -> None:
    install.main(["test", "tests/test_story.py", "-x"])
    assert commands == [["python", "-m", "pytest", "tests/test_story.py", "-x"]]


def make_program(folder: Path, name: str, line: str = "true") -> None:
    (folder / name).write_text(f"#!/bin/sh\n{line}\n")
    (folder / name).chmod(0o755)


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder in which programs are found, of root's, who has no browser of Playwright's either."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return tmp_path


def test_the_fast_browser_is_installed_beside_another(programs: Path) -> None:
    make_program(programs, "chromium")
    make_program(programs, "apt-get", f"echo $@ >> {programs}/asked")
    install.install_browser()
    assert "install -y --no-install-recommends chromium-headless-shell" in (programs / "asked").read_text()


def test_any_browser_will_do_where_the_fast_one_is_not_to_be_had(programs: Path) -> None:
    make_program(programs, "chromium")
    make_program(programs, "apt-get", "echo E: Unable to locate package; exit 100")
    install.install_browser()


def test_no_browser_at_all_is_refused_with_apts_own_words(programs: Path) -> None:
    make_program(programs, "apt-get", "echo E: Unable to locate package; exit 100")
    with pytest.raises(install.Refused, match=r"install the package chromium .* Unable to locate package"):
        install.install_browser()


def test_it_starts_without_anything_installed() -> None:
    script = str(install.ROOT / "annotator" / "bootstrap.py")
    answer = subprocess.run(
        [sys.executable, "-I", "-S", script, "fly"], capture_output=True, text=True, check=False, timeout=60
    )
    assert (answer.returncode, answer.stdout) == (1, "")
    assert answer.stderr.count("\n") == 1
