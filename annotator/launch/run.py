"""`make run`: starts the servers, brings the database up to date and runs every process of the product until Ctrl-C.

COMMANDS is what the product consists of; docker-compose.yml runs the same lines.
"""

import json
import os
import secrets
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from annotator.launch import child_processes
from annotator.launch.embedded import AccountRefused, ServiceFailed, Services, services
from annotator.launch.install import CannotInstall, check_port, door, held
from annotator.launch.supervisor import Command, Supervisor

ROOT = Path(__file__).resolve().parents[2]
DEMO_LOGINS = ("manager", "alice", "bob", "erin")
LEFT_ALONE = "The demo does not change accounts that it did not create:"
FIRST_ADMINISTRATOR = "python -m annotator.launch.manage first_administrator"

# At a low priority: people at the pages and scripts at REST come first (annotator/infrastructure/background/pacing.py).
_WORKER = "nice -n 10 celery -A annotator worker --loglevel INFO --without-gossip --without-mingle"
PRIVATE = ("artifacts", "logs", "redis", "static")
"""Our folders under VAR_DIR; the one itself is left open, as PostgreSQL's account has to pass through."""
PREPARE = Command("prepare", "python -m annotator.launch.prepare")
COMMANDS = (
    Command("web", "python -m annotator.launch.webserver"),
    # Threads: its work waits for the database, and one process is a third of the memory of three.
    Command("light", f"{_WORKER} -Q light -n light@%h --pool threads --concurrency 4"),
    # Solo: torch is never forked, and one run at a time is what a machine can do.
    Command("train", f"{_WORKER} -Q train -n train@%h --pool solo"),
    Command("score", f"{_WORKER} -Q score -n score@%h --pool solo"),
    Command("beat", "celery -A annotator beat --loglevel INFO"),
)
# After this long the terminal says what is still missing, and waiting goes on.
_PATIENCE_SECONDS = 60


class Stopped(BaseException):
    """Somebody asked us to end. It unwinds the stack, which ends everything in order.

    A BaseException, so that no `except Exception` on the way keeps the product running.
    """


def main() -> int:
    var_dir = Path(os.environ.get("VAR_DIR", ROOT / "var")).resolve()
    host, port = os.environ.get("HOST", "127.0.0.1"), os.environ.get("PORT", "8000")
    with_demo()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # Whoever started us by nohup wants us to outlive the terminal.
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _stop)
    try:
        with held(var_dir):
            check_port(host, port)
            run(var_dir, address=f"http://{'127.0.0.1' if host == '0.0.0.0' else host}:{port}")
    except Stopped:
        print("Rewardloop has stopped.", flush=True)
    except (ServiceFailed, AccountRefused) as refusal:
        raise CannotInstall(str(refusal)) from refusal
    return 0


def with_demo() -> bool:
    """Returns whether the demo is wanted, which it is unless DEMO says no."""
    wish = os.environ.get("DEMO", "1").strip().lower()
    if wish not in {"", "0", "1", "false", "true"}:
        raise CannotInstall(f"DEMO is {wish!r}: write 1 or 0")
    return wish not in {"0", "false"}


def _stop(_number: int, _frame: FrameType | None) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the second Ctrl-C of an impatient person must not leave anyone behind
    print("Stopping ...", flush=True)
    raise Stopped


def run(var_dir: Path, *, address: str) -> None:
    """Runs the product until an exception ends it, `Stopped` above all."""
    keep_private(var_dir)
    keep_secret_key(var_dir / "secret-key")
    print("Starting PostgreSQL and Redis ...", flush=True)
    with services(var_dir) as started, published(started, var_dir / "services.json"):
        environment = process_environment(started, var_dir)
        print("Bringing the database up to date ...", flush=True)
        prepare(environment, log=var_dir / "logs" / "prepare.log")
        supervisor = Supervisor(
            COMMANDS, servers=started.servers, environment=environment, root=ROOT, logs=var_dir / "logs"
        )
        try:
            supervisor.start()
            wait_until_ready(supervisor, address)
            logins = demo_logins(var_dir) if with_demo() else first_administrator(environment)
            print(greeting(started, var_dir, address, logins), flush=True)
            while True:
                supervisor.turn(1)
        finally:
            supervisor.stop()


def keep_private(var_dir: Path) -> None:
    """Keeps other accounts from reading what we write: texts, ratings, models, logs."""
    os.umask(0o077)
    for name in PRIVATE:
        folder = var_dir / name
        folder.mkdir(mode=0o700, exist_ok=True)
        folder.chmod(0o700)  # a folder that is there already may be from a version that left it open


def keep_secret_key(file: Path) -> None:
    """Makes Django's SECRET_KEY once, in a file that only we can read and where settings.py looks for it."""
    if "SECRET_KEY" in os.environ or file.exists():
        return
    # Opened with its final mode: with a chmod afterwards, others could read the key in between.
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode=0o600)
    with os.fdopen(descriptor, "w") as key:
        key.write(secrets.token_urlsafe(50))


@contextmanager
def published(started: Services, file: Path) -> Iterator[None]:
    """Publishes the servers' addresses in a file while we run, for `manage.py` in another terminal."""
    file.unlink(missing_ok=True)  # of a predecessor that was killed
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode=0o600)
    with os.fdopen(descriptor, "w") as addresses:
        json.dump(started.environment, addresses)
    try:
        yield
    finally:
        file.unlink(missing_ok=True)


def process_environment(started: Services, var_dir: Path) -> dict[str, str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    here = {"PATH": path, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", "VAR_DIR": str(var_dir)}
    return {**os.environ, **started.environment, **here}


def prepare(environment: Mapping[str, str], *, log: Path) -> None:
    with log.open("w") as output:
        done = subprocess.run(
            [*PREPARE.line.split(), *(["demo"] if with_demo() else [])],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=ROOT,
            env=environment,
            start_new_session=True,  # Ctrl-C reaches us alone, and we end it
            preexec_fn=child_processes.die_with_parent(signal.SIGKILL),
            check=False,
        )
    if done.returncode:
        words = (log.read_text().strip().splitlines() or ["it printed nothing"])[-1]
        raise CannotInstall(f"The database could not be brought up to date: {words} (the log is {log})")


def wait_until_ready(supervisor: Supervisor, address: str) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while missing := still_missing(address):
        if time.monotonic() > deadline:
            print(f"Not ready yet: {missing}. Waiting on.", flush=True)
            deadline += _PATIENCE_SECONDS
        supervisor.turn(0.2)  # rather than sleep: a process that dies meanwhile is started again


def still_missing(address: str) -> str:
    """Returns what keeps the product from being ready, by its own health page; empty when all is well."""
    try:
        with urllib.request.urlopen(f"{address}/api/v1/health/ready/", timeout=3) as answer:
            health: dict[str, Any] = json.load(answer)
    except urllib.error.HTTPError as error:
        return f"the web answers {error.code}: {error.read(300).decode(errors='replace')}"
    except (OSError, ValueError):
        return "the web does not answer"
    idle = [name for name, queue in health["queues"].items() if not queue["workers"]]
    return f"no worker for {' and '.join(idle)}" if idle else ""


def demo_logins(var_dir: Path) -> list[str]:
    """Returns lines on how to log in to the demo.

    They leave out accounts of the same names that people made: the demo's password does not open those.
    """
    # The seeding ran in a process of its own, whose log is all that it leaves us.
    log_lines = (var_dir / "logs" / "prepare.log").read_text().splitlines()
    notices = [line for line in log_lines if line.startswith(LEFT_ALONE)]
    left_alone = {name for line in notices for name in line.removeprefix(LEFT_ALONE).replace(",", " ").split()}
    password_file = var_dir / "demo-password"
    password = os.environ.get("DEMO_PASSWORD") or (password_file.read_text().strip() if password_file.exists() else "")
    names = ", ".join(name for name in DEMO_LOGINS if name not in left_alone)
    return [*([f"log in as  {names} with the password {password}"] if names else []), *notices]


def first_administrator(environment: Mapping[str, str]) -> list[str]:
    """Makes an account that may do everything where there is none; returns what to print.

    The output is captured, not logged: the password goes nowhere but to the terminal.
    """
    done = subprocess.run(
        [*FIRST_ADMINISTRATOR.split()],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment,
        preexec_fn=child_processes.die_with_parent(signal.SIGKILL),
        check=False,
    )
    return done.stderr.strip().splitlines()[-1:] if done.returncode else done.stdout.strip().splitlines()


def greeting(started: Services, var_dir: Path, address: str, logins: Sequence[str]) -> str:
    lines = [
        "",
        "Rewardloop is ready.",
        f"  work       {address}/",
        f"  administer {address}/admin/",
        f"  REST       {address}/api/v1/docs/",
        *(f"  {line}" for line in logins),
        f"  state      {var_dir} (logs in logs/)",
    ]
    homes = [server.home for server in started.servers if not server.home.is_relative_to(var_dir)]
    lines += [f"             {home} (where PostgreSQL's account can reach it)" for home in homes]
    return "\n".join([*lines, "  stop       Ctrl-C", ""])


if __name__ == "__main__":
    sys.exit(door(main))
