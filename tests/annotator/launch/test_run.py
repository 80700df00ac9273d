"""The product's processes: the same lines everywhere, started again when they die, gone when we are."""

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from annotator.launch import run
from annotator.launch.install import CannotInstall
from annotator.launch.supervisor import Command

COMPOSE: dict[str, Any] = yaml.safe_load((run.ROOT / "docker-compose.yml").read_text())["services"]
ON_A_GPU = {"gpu-train": "train", "gpu-score": "score"}

# In a process of its own, as it adopts and ends every orphan below it.
SUPERVISED = """
import signal, sys
from pathlib import Path
from annotator.launch import supervisor

def stop(number, frame):
    raise SystemExit

signal.signal(signal.SIGTERM, stop)
folder = Path(sys.argv[1])
commands = [supervisor.Command(f"child{number}", line) for number, line in enumerate(sys.argv[2:])]
running = supervisor.Supervisor(commands, servers=(), environment={"PATH": "/usr/bin:/bin"}, root=folder, logs=folder)
try:
    running.start()
    while True:
        running.turn(0.05)
finally:
    running.stop()
"""


class Supervised:
    """A supervisor over shell lines, each of which appends its process id to `started`."""

    def __init__(self, folder: Path, *scripts: str) -> None:
        lines = [f"sh -c 'echo $$ >> started; {script}'" for script in scripts]
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, "-c", SUPERVISED, str(folder), *lines], stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> "Supervised":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()

    def started(self, count: int) -> list[int]:
        """The process ids, once there are so many."""
        file = self.folder / "started"
        wait_until(lambda: file.exists() and len(file.read_text().split()) >= count)
        return [int(pid) for pid in file.read_text().split()]

    def stop(self) -> str:
        self.process.terminate()
        output, _ = self.process.communicate(timeout=60)
        return output


def wait_until(condition: Any, *, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("command", run.COMMANDS, ids=lambda command: command.name)
def test_compose_runs_the_same_line(command: Command) -> None:
    assert COMPOSE[command.name]["command"] == command.line


def test_compose_prepares_the_database_with_the_same_line() -> None:
    assert COMPOSE["prepare"]["command"] == run.PREPARE.line


@pytest.mark.parametrize(("service", "name"), ON_A_GPU.items())
def test_the_gpu_workers_run_the_same_line_on_a_reserved_gpu(service: str, name: str) -> None:
    assert COMPOSE[service]["command"] == COMPOSE[name]["command"]
    assert COMPOSE[service]["profiles"] == ["gpu-worker"]
    (device,) = COMPOSE[service]["deploy"]["resources"]["reservations"]["devices"]
    assert (device["driver"], device["capabilities"]) == ("nvidia", ["gpu"])


def test_compose_has_no_process_that_make_run_lacks() -> None:
    known = {command.name for command in run.COMMANDS} | {"prepare"}
    assert set(COMPOSE) - {"postgres", "redis", "proxy"} - set(ON_A_GPU) == known


@pytest.mark.parametrize("service", COMPOSE)
def test_every_service_has_a_health_check(service: str) -> None:
    assert COMPOSE[service]["healthcheck"]["test"]


def test_compose_keeps_no_secret_and_evicts_no_work() -> None:
    assert "noeviction" in COMPOSE["redis"]["command"]
    assert COMPOSE["web"]["environment"]["SECRET_KEY"].startswith("${SECRET_KEY:?")


def test_compose_publishes_the_proxy_alone_and_on_this_machine_unless_told_otherwise() -> None:
    published = {name: service["ports"] for name, service in COMPOSE.items() if "ports" in service}
    assert published == {"proxy": ["${BIND:-127.0.0.1}:${PORT:-8000}:8000"]}
    assert COMPOSE["web"]["environment"]["TRUSTED_PROXIES"] == "${TRUSTED_PROXIES:-1}"


@pytest.mark.parametrize("file", [".gitignore", ".dockerignore"])
def test_the_file_of_secrets_goes_nowhere(file: str) -> None:
    assert {".env", "/.env"} & set((run.ROOT / file).read_text().split())


def test_the_secret_key_is_made_once_and_for_our_eyes_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SECRET_KEY", raising=False)
    file = tmp_path / "secret-key"
    run.keep_secret_key(file)
    first = file.read_text()
    run.keep_secret_key(file)
    assert file.read_text() == first
    assert len(first) >= 50
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize(("demo", "wanted"), [("", True), ("1", True), ("0", False), ("false", False)])
def test_the_demo_is_left_out_where_asked(monkeypatch: pytest.MonkeyPatch, demo: str, wanted: bool) -> None:
    monkeypatch.setenv("DEMO", demo)
    assert run.with_demo() is wanted


def test_a_demo_that_is_neither_yes_nor_no_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEMO", "no thanks")
    with pytest.raises(CannotInstall, match="DEMO is 'no thanks': write 1 or 0"):
        run.with_demo()


def test_the_greeting_names_the_demo_s_own_accounts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEMO_PASSWORD", "for the demo")
    (tmp_path / "logs").mkdir()
    log = tmp_path / "logs" / "prepare.log"
    log.write_text("Demo project made.\n")
    assert run.demo_logins(tmp_path) == ["log in as  manager, alice, bob, erin with the password for the demo"]
    log.write_text(f"Demo project made.\n{run.LEFT_ALONE} manager, alice\n")
    first, second = run.demo_logins(tmp_path)
    assert first == "log in as  bob, erin with the password for the demo"
    assert second.endswith("manager, alice")


@pytest.mark.slow
def test_a_killed_process_is_started_again(tmp_path: Path) -> None:
    with Supervised(tmp_path, "exec sleep 600") as supervised:
        (first,) = supervised.started(1)
        os.kill(first, signal.SIGKILL)
        _, second = supervised.started(2)
        assert alive(second)
        assert "was killed by signal 9" in supervised.stop()


@pytest.mark.slow
def test_stopping_ends_every_process(tmp_path: Path) -> None:
    with Supervised(tmp_path, "exec sleep 600", "exec sleep 601") as supervised:
        pids = supervised.started(2)
        supervised.stop()
        assert not any(map(alive, pids))


@pytest.mark.slow
def test_the_children_of_a_killed_process_are_ended(tmp_path: Path) -> None:
    script = 'sh -c "echo \\$\\$ >> started; exec sleep 600" & wait'
    with Supervised(tmp_path, script) as supervised:
        first, grandchild = supervised.started(2)
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: not alive(grandchild))


@pytest.mark.slow
def test_a_killed_supervisor_leaves_nobody_behind(tmp_path: Path) -> None:
    with Supervised(tmp_path, "exec sleep 600") as supervised:
        pids = supervised.started(1)
        supervised.process.kill()
        wait_until(lambda: not any(map(alive, pids)))


@pytest.mark.slow
def test_what_a_process_says_goes_to_its_log_and_warnings_to_the_terminal(tmp_path: Path) -> None:
    with Supervised(tmp_path, "echo quiet; echo WARNING: loud; exec sleep 600") as supervised:
        log = tmp_path / "child0.log"
        wait_until(lambda: log.exists() and "loud" in log.read_text())
        output = supervised.stop()
        assert log.read_text() == "quiet\nWARNING: loud\n"
        assert "WARNING: loud" in output
        assert "quiet" not in output
