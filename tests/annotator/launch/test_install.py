"""What stands between a bare machine and a start is said in one sentence."""

import errno
import os
import re
import socket
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from annotator.launch import install, lock

PIN = r"[a-z0-9][a-z0-9._-]*==[0-9][0-9a-z.]*(\+cpu)?( ;.*)? \\$"


def test_a_port_in_use_is_refused_with_its_number() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        with pytest.raises(install.CannotInstall, match=f"Port {port} is in use"):
            install.check_port("127.0.0.1", port)


@pytest.mark.parametrize("port", ["", "eighty", "0", "65536", "-1"])
def test_a_port_that_is_none_is_refused(port: str) -> None:
    with pytest.raises(install.CannotInstall, match="write a number from 1 to 65535"):
        install.check_port("127.0.0.1", port)


def test_a_second_run_is_told_the_first_ones_process(tmp_path: Path) -> None:
    first = install.held(tmp_path)
    with (
        first,
        pytest.raises(install.CannotInstall, match=f"already runs .* process {os.getpid()}"),
        install.held(tmp_path),
    ):
        pass


def test_a_lock_of_a_dead_process_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "run.lock").write_text("999999")
    with install.held(tmp_path):
        assert (tmp_path / "run.lock").read_text() == str(os.getpid())


def test_a_full_disk_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(install.CannotInstall, match="The disk is full"):
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


def test_a_half_written_stamp_counts_as_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(install, "STAMP", tmp_path / "installed.json")
    install.STAMP.write_text('{"digest": "12')
    assert install.read_stamp() == {}


def test_the_lock_names_no_place() -> None:
    lines = "".join(file.read_text() for file in install.REQUIREMENTS.glob("*.txt")).splitlines()
    assert all(line.startswith(("    --hash=sha256:", "#")) or re.match(PIN, line) for line in lines)


@pytest.mark.parametrize("build", ["torch-cpu", "torch-pypi"])
def test_every_requirement_is_locked(build: str) -> None:
    project = tomllib.loads((install.ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = {normal(line) for lines in (project["dependencies"], *extras.values()) for line in lines}
    # web.txt has the extra `server`.
    files = [install.REQUIREMENTS / f"{name}.txt" for name in install.files(extras.keys() - {"server"}, build)]
    assert wanted <= {normal(line) for file in files for line in file.read_text().splitlines()}


def test_a_package_stands_in_one_file() -> None:
    files = [install.REQUIREMENTS / f"{name}.txt" for name in (*lock.FILES, "torch-pypi")]
    # Within a file it may have a version for each Python.
    pinned = [{normal(line) for line in file.read_text().splitlines() if re.match(PIN, line)} for file in files]
    names = [name for line in pinned for name in line]
    assert len(names) == len(set(names))


def test_both_builds_are_of_the_same_torch() -> None:
    builds = [lock.blocks((install.REQUIREMENTS / f"{name}.txt").read_text())["torch"] for name in lock.TORCH]
    assert {lock.version_of(block).removesuffix("+cpu") for block in builds} == {"2.13.0"}


def test_a_common_marker_is_left_out() -> None:
    lines = [
        "django==5.2 ; a == 'b' \\",
        "    --hash=x",
        "triton==3 ; a == 'b' and c == 'd' \\",
        "nh3==1 ; a == 'b' \\",
        "",
    ]
    shorter = lock.without_common_marker("\n".join(lines))
    assert shorter.splitlines()[1:] == ["    --hash=x", "triton==3 ; a == 'b' and c == 'd' \\", "nh3==1 \\"]


def normal(requirement: str) -> str:
    return re.split(r"[\[=<>~ ]", requirement)[0].strip().lower().replace("_", "-")


# pip's settings --------------------------------------------------------------------------------------------
def test_uv_is_told_what_pip_is_set_to() -> None:
    settings = install.uv_settings(
        "global.index-url='https://a/simple'\nglobal.find-links='/w /x'\nglobal.user='true'\n"
    )
    assert settings == {"UV_DEFAULT_INDEX": "https://a/simple", "UV_FIND_LINKS": "/w,/x"}


def test_the_environment_outdoes_a_file() -> None:
    settings = install.uv_settings(":env:.index-url='https://b/simple'\nglobal.index-url='https://a/simple'\n")
    assert settings == {"UV_DEFAULT_INDEX": "https://b/simple"}


def test_several_indexes_stay_several() -> None:
    settings = install.uv_settings("install.extra-index-url='\\nhttps://a/simple\\nhttps://b/simple'\n")
    assert settings == {"UV_INDEX": "https://a/simple https://b/simple"}


def test_people_hear_of_downloads_not_of_a_hundred_packages(capsys: pytest.CaptureFixture[str]) -> None:
    for line in ("Downloading torch (182.9MiB)\n", " + amqp==5.4.2\n", "error: no space left\n"):
        install.tell_people(line)
    assert capsys.readouterr().out == "  Downloading torch (182.9MiB)\n  error: no space left\n"


# Which torch -----------------------------------------------------------------------------------------------
@pytest.fixture
def no_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without an NVIDIA driver, whose PATH is this folder."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(install, "NVIDIA_DRIVER", tmp_path / "version")
    monkeypatch.setattr(sys, "platform", "linux")
    return tmp_path


def chosen_build(monkeypatch: pytest.MonkeyPatch, *answers: bool) -> tuple[str, list[str]]:
    """What is chosen where the configured index and PyTorch's answer like this."""
    left = list(answers)
    monkeypatch.setattr(install, "offered", lambda *_: left.pop(0))
    with (install.ROOT / "pyproject.toml").open() as lock_file:
        return install.torch_build(lock_file)


def test_without_a_driver_the_configured_index_is_asked_first(no_driver: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen_build(monkeypatch, True) == ("torch-cpu", [])


def test_then_pytorchs_own(no_driver: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen_build(monkeypatch, False, True) == ("torch-cpu", ["--torch-backend", "cpu"])


def test_out_of_reach_it_is_the_cuda_build_and_that_is_said(
    no_driver: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert chosen_build(monkeypatch, False, False) == ("torch-pypi", [])
    assert "the CUDA build" in capsys.readouterr().out


def test_with_a_driver_it_is_the_cuda_build(no_driver: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (no_driver / "version").touch()
    assert chosen_build(monkeypatch) == ("torch-pypi", [])


def test_what_is_fetched_is_said_before_the_disk_is_checked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(install, "SIZES", {"web": (90, 10**9)})
    with pytest.raises(install.CannotInstall, match="The disk is full"):
        install.announce(["web"])
    assert "web: at most 90 MB to be fetched" in capsys.readouterr().out


def test_every_file_of_an_installation_has_a_size() -> None:
    assert install.SIZES.keys() == {*lock.FILES, *lock.TORCH} - {"hub"}


# The tests -------------------------------------------------------------------------------------------------
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


def test_what_reads_ours_is_installed_for_its_tests(commands: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", {})
    install.main(["test-readers", "-x"])
    assert commands == [["python", "-m", "pytest", "-m", "readers", "-x"]]
    assert set(os.environ) == {"READERS", "DATASETS"}


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
    with pytest.raises(install.CannotInstall, match=r"install the package chromium .* Unable to locate package"):
        install.install_browser()


def test_it_starts_without_anything_installed() -> None:
    script = str(install.ROOT / "annotator" / "launch" / "install.py")
    answer = subprocess.run(
        [sys.executable, "-I", "-S", script, "fly"], capture_output=True, text=True, check=False, timeout=60
    )
    assert (answer.returncode, answer.stdout) == (1, "")
    assert answer.stderr.count("\n") == 1
