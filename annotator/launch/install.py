"""From a bare Python to a working `.venv`, and into it: `make run`, `make test`, `make check`.

Runs before anything is installed, so it uses the standard library only and imports nothing of ours. pip installs a
pinned uv, and uv the files of requirements/ by their hashes. `uv sync --locked` cannot: a uv.lock names the index that
it was made with, and is refused where pip is set to another one, as in a closed network.
"""

import sys

# Before the imports: an older Python has no tomllib and would answer with a traceback.
if not (3, 11) <= sys.version_info < (3, 15):
    sys.exit("Rewardloop needs Python 3.11 to 3.14; if you have one beside this: make run PYTHON=python3.11")

import ast
import errno
import fcntl
import hashlib
import json
import os
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

ROOT = Path(__file__).resolve().parents[2]
# VENV=.venv-3.13 make test PYTHON=python3.13: an environment for each Python.
VENV = ROOT / os.environ.get("VENV", ".venv")
STAMP = VENV / "installed.json"
REQUIREMENTS = ROOT / "requirements"

MEGABYTE, GIGABYTE = 10**6, 10**9
RUN_BYTES = GIGABYTE // 2

CPU_INDEX = "https://download.pytorch.org/whl/cpu"
NVIDIA_DRIVER = Path("/proc/driver/nvidia/version")


# What the packages of one file of the lock take on Linux x86_64: megabytes to be fetched, and unpacked.
SIZES = {
    "installer": (18, 40),
    "web": (114, 370),
    "embedded": (27, 73),
    "learning": (122, 230),
    "torch-cpu": (192, 699),
    "torch-pypi": (2_730, 4_700),
    "dev": (139, 432),
}

# pip's settings, and those of uv that say the same.
UV_SETTINGS = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "no-index": "UV_NO_INDEX",
    "trusted-host": "UV_INSECURE_HOST",
    "default-timeout": "UV_HTTP_TIMEOUT",
    "timeout": "UV_HTTP_TIMEOUT",
    "proxy": "ALL_PROXY",
    "cert": "SSL_CERT_FILE",
    "client-cert": "SSL_CLIENT_CERT",
}

EVERYTHING = {"embedded", "learning", "dev"}
IN_THE_VENV = {
    "check": (
        "ruff check .",
        "ruff format --check .",
        "mypy",
        "lint-imports",
        "python -m tests.house",
        "python -m annotator.launch.embedded python manage.py makemigrations --check --dry-run",
        "python -m sphinx -q --fail-on-warning --keep-going docs build/docs",
        "python -m annotator.launch.lock --check",
    ),
    "lock": ("python -m annotator.launch.lock",),
    "format": ("ruff check --fix .", "ruff format ."),
    "messages": ("python -m annotator.launch.translations",),
    "vendor": ("python -m annotator.launch.vendor",),
}

# The first one is Chromium without windows, and does a page in a third of the time.
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
# A worker of the tests takes a gigabyte with its browser and its servers.
MOST_WORKERS = 8


class CannotInstall(Exception):
    """Something outside our control is in the way; the message says in a sentence what."""


def main(words: Sequence[str]) -> int:
    command, *arguments = words or ["run"]
    acts = {"run": run, "test": test, "test-readers": test_readers, "bench": bench}
    if command in acts:
        return acts[command](arguments)
    if command not in IN_THE_VENV:
        raise CannotInstall(f"install.py knows {', '.join([*acts, *IN_THE_VENV])}, not {command!r}.")
    install(EVERYTHING)
    *others, last = [line.split() for line in IN_THE_VENV[command]]
    return inside([*others, [*last, *arguments]])


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
    install(EVERYTHING)
    install_browser()
    # One worker more than there are cores, as a test also waits.
    workers = min((os.cpu_count() or 1) + 1, MOST_WORKERS)
    side_by_side = [f"--numprocesses={workers}", "--dist=loadgroup", "--no-loadscope-reorder"]
    return inside([["python", "-m", "pytest", *(arguments or side_by_side)]])


def test_readers(arguments: Sequence[str]) -> int:
    """What other software reads of ours, in environments of its own, and real data where SHARED_DATA names them."""
    install(EVERYTHING)
    os.environ.setdefault("READERS", str(ROOT / "var" / "readers"))
    os.environ.setdefault("DATASETS", "1")
    return inside([["python", "-m", "pytest", "-m", "readers", *arguments]])


def bench(arguments: Sequence[str]) -> int:
    """A benchmark by its name with arguments of its own, or every one that needs no other product."""
    install(EVERYTHING)
    every = sorted(file.stem.removeprefix("bench_") for file in (ROOT / "benchmarks").glob("bench_*.py"))
    names = arguments[:1] or [name for name in every if name != "peers"]
    return inside([["python", "-m", f"benchmarks.bench_{name}", *arguments[1:]] for name in names])


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
            raise CannotInstall(
                f"Rewardloop already runs on {var_dir}, as process {lock.read().strip() or 'unknown'}."
            ) from None
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield


def check_port(host: str, port: str) -> None:
    if not port.isdigit() or not 0 < int(port) < 65536:
        raise CannotInstall(f"PORT is {port!r}: write a number from 1 to 65535.")
    try:
        socket.create_server((host, int(port))).close()
    except PermissionError:
        raise CannotInstall(f"Port {port} needs root: choose one above 1023, as in PORT=8001 make run.") from None
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise CannotInstall(f"Nothing can listen on {host}:{port}: {error.strerror}.") from None
        raise CannotInstall(
            f"Port {port} is in use by another program: choose one, as in PORT=8001 make run."
        ) from None


def check_space(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise CannotInstall(
            f"The disk is full: {folder} has {free / GIGABYTE:.1f} GB left, {needed / GIGABYTE:.1f} GB are needed."
        )


# The virtual environment -------------------------------------------------------------------------------------
def install(extras: set[str]) -> None:
    """Brings `.venv` to the locked packages, unless its stamp, written last, says that it is there already."""
    with VENV.with_name(f"{VENV.name}.lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("Waiting for another installation to end ...", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        stamp = read_stamp()
        extras = extras | set(stamp.get("extras", ()))
        if stamp.get("state") == state(extras, stamp.get("torch", "")):
            return
        check_space(ROOT, RUN_BYTES)
        STAMP.unlink(missing_ok=True)
        if not works():
            make_venv(lock)
        torch, options = torch_build(lock) if "learning" in extras else ("", [])
        announce([name for name in files(extras, torch) if name not in stamp.get("files", ())])
        if not stamp:  # an installation that was cut short may have left packages without some of their files
            options = [*options, "--reinstall"]
        locked = [str(REQUIREMENTS / f"{name}.txt") for name in files(extras, torch)]
        # Compiled at once: five processes start together, and PYTHONDONTWRITEBYTECODE would have each do it every time.
        if uv(["sync", "--require-hashes", "--compile-bytecode", *options, *locked], lock):
            raise CannotInstall("The packages could not be installed; what uv says about it stands above.")
        new = {"state": state(extras, torch), "extras": sorted(extras), "torch": torch, "files": files(extras, torch)}
        STAMP.write_text(json.dumps(new))


def read_stamp() -> dict[str, Any]:
    try:
        stamp: dict[str, Any] = json.loads(STAMP.read_text())
    except (OSError, ValueError):
        return {}
    return stamp


def files(extras: Iterable[str], torch: str) -> list[str]:
    """Those of the lock that make up an installation. The project itself is not installed: it runs from its folder."""
    return ["installer", "web", *sorted(extras), *([torch] if torch else [])]


def state(extras: Iterable[str], torch: str) -> list[object]:
    """What is installed, for what, and what of it is there: of the same state is what needs no installation."""
    locked = b"".join((REQUIREMENTS / f"{name}.txt").read_bytes() for name in files(extras, torch))
    there = sorted(folder.name for folder in VENV.glob("lib/python3.*/site-packages/*.dist-info"))
    return [hashlib.sha256(locked).hexdigest(), list(sys.version_info[:2]), has_nvidia_driver(), there]


def torch_build(lock: TextIO) -> tuple[str, list[str]]:
    """Which of the lock's two builds of torch this machine takes, and what uv needs to be told to find it."""
    if sys.platform != "linux":
        return "torch-pypi", []
    if has_nvidia_driver():
        print("torch: the CUDA build, as this machine has an NVIDIA driver.", flush=True)
        return "torch-pypi", []
    own = ["--torch-backend", "cpu"]
    for options, place in (([], "the package index that pip is set to"), (own, CPU_INDEX)):
        if offered("torch-cpu", options, lock):
            print(f"torch: the CPU build of {place}, as there is no NVIDIA driver.", flush=True)
            return "torch-cpu", options
    print(f"torch: the CUDA build, which works without a GPU as well: {CPU_INDEX} has no other that we can reach.")
    return "torch-pypi", []


def has_nvidia_driver() -> bool:
    return NVIDIA_DRIVER.exists() or shutil.which("nvidia-smi") is not None


def offered(name: str, options: Sequence[str], lock: TextIO) -> bool:
    """Whether an index has a package of this file for this machine. Fetches nothing but what it says of it."""
    command = ["install", "--dry-run", "--no-deps", "--require-hashes", "--quiet", *options]
    patience = {"UV_HTTP_TIMEOUT": "10", "UV_HTTP_RETRIES": "1"}
    return not uv([*command, "--requirements", str(REQUIREMENTS / f"{name}.txt")], lock, patience, tell=lambda _: None)


def announce(names: Sequence[str]) -> None:
    """Says what is about to be fetched. Raises Refused where there is no room for it."""
    fetched, unpacked = (sum(SIZES[name][place] for name in names) * MEGABYTE for place in (0, 1))
    unpacked += RUN_BYTES
    if names:
        what = f"{', '.join(names)}: at most {size(fetched)} to be fetched, {size(unpacked)} of disk in {VENV}"
        print(f"Installing and compiling the packages of {what}. This takes a minute or two ...", flush=True)
    else:
        print(f"Bringing the packages in {VENV} up to date ...", flush=True)
    check_space(VENV, unpacked)


def size(count: float) -> str:
    return f"{count / GIGABYTE:.1f} GB" if count >= GIGABYTE else f"{count / MEGABYTE:.0f} MB"


def tell_people(line: str) -> None:
    """What uv does, without the list of a hundred packages that it closes with."""
    if not line.startswith((" + ", " - ", " ~ ")):
        print(f"  {line.rstrip()}", flush=True)


def uv(
    arguments: Sequence[str],
    lock: TextIO,
    environment: Mapping[str, str] | None = None,
    *,
    tell: Callable[[str], object] = tell_people,
) -> int:
    """uv's exit code; `tell` hears each line that it says."""
    with subprocess.Popen(
        [venv_program("uv"), "pip", *arguments, "--python", venv_program("python")],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**uv_environment(), **(environment or {})},
        cwd=ROOT,
        pass_fds=[lock.fileno()],  # where we are killed, the lock is held until uv has ended as well
    ) as running:
        for line in running.stdout or ():
            tell(line)
    return running.returncode


def uv_environment() -> dict[str, str]:
    """uv reads no settings of pip's. Here they are, as its own, unless it has such a one already."""
    _, configuration = quietly([venv_program("python"), "-m", "pip", "config", "list"])
    # Every index counts alike, as with pip; the hashes say which file it has to be.
    settings = {"UV_INDEX_STRATEGY": "unsafe-best-match", "UV_PYTHON_DOWNLOADS": "never"}
    return {**settings, **uv_settings(configuration), **os.environ}


def uv_settings(pip_configuration: str) -> dict[str, str]:
    """From the lines of `pip config list`, like global.index-url='https://...'. Later ones win; PIP_... comes first."""
    settings: dict[str, str] = {}
    for line in sorted(pip_configuration.splitlines(), key=lambda line: line.startswith(":env:")):
        name, _, quoted = line.partition("=")
        section, _, key = name.rpartition(".")
        if key in UV_SETTINGS and section in {"global", "install", ":env:"}:
            separator = "," if key == "find-links" else " "
            settings[UV_SETTINGS[key]] = separator.join(str(ast.literal_eval(quoted)).split())
    return settings


def works() -> bool:
    """Whether `.venv` has this Python, pip and uv."""
    ours = f"import sys, pip; sys.exit(sys.version_info[:2] != {sys.version_info[:2]})"
    try:
        asked = ([venv_program("python"), "-c", ours], [venv_program("uv"), "--version"])
        return not any(quietly(command)[0] for command in asked)
    except OSError:
        return False


def make_venv(lock: TextIO) -> None:
    """An environment that has nothing but pip, and what installs the rest."""
    print(f"Making {VENV} ...", flush=True)
    shutil.rmtree(VENV, ignore_errors=True)
    code, said = quietly([sys.executable, "-m", "venv", str(VENV)])
    if os.strerror(errno.ENOSPC) in said and code:
        raise CannotInstall(f"The disk is full: there is no room for {VENV}.")
    if code:
        why = "install its venv package (apt install python3-venv)." if "ensurepip" in said else last_line(said)
        raise CannotInstall(f"This Python cannot make a virtual environment: {why}")
    command = [venv_program("python"), "-m", "pip", "install", "--disable-pip-version-check", "--no-deps"]
    command += ["--require-hashes", "--requirement", str(REQUIREMENTS / "installer.txt")]
    code, said = quietly(command, pass_fds=[lock.fileno()])
    if code:
        error = next((line for line in said.splitlines() if line.startswith("ERROR:")), last_line(said))
        raise CannotInstall(f"pip could not install uv, which installs the rest: {error}")


def quietly(command: Sequence[str], **options: Any) -> tuple[int, str]:
    """The command's exit code and what it has said, errors too."""
    streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    done = subprocess.run(command, text=True, check=False, **streams, **options)
    return done.returncode, done.stdout


def last_line(output: str) -> str:
    return (output.strip().splitlines() or ["it printed nothing"])[-1].strip()


def install_browser() -> None:
    """Chromium for the browser tests, by apt where we may: the fast one, or else any."""
    if any((Path.home() / ".cache" / "ms-playwright").glob("chromium*")):
        return
    for package, enough in ((BROWSERS[0], BROWSERS[:1]), ("chromium", BROWSERS)):
        if any(map(shutil.which, enough)) or not (hindrance := apt_install(package)):
            return
    raise CannotInstall(
        f"The browser tests need Chromium: install the package chromium (apt-get install chromium). {hindrance}"
    )


def apt_install(package: str) -> str:
    """What was in the way; nothing if it is installed."""
    if not shutil.which("apt-get") or os.geteuid() != 0:
        return "This takes apt-get and root."
    print(f"Installing {package} for the browser tests ...", flush=True)
    for words in (["update"], ["install", "-y", "--no-install-recommends", package, "fonts-dejavu-core"]):
        command = ["apt-get", "-q", "-o", "Acquire::http::Timeout=20", *words]
        code, said = quietly(command, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})
        if code:
            return f"apt-get said: {last_line(said)}"
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
    except CannotInstall as refusal:
        print(refusal, file=sys.stderr)
    except OSError as error:
        print(sentence(error), file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(door(lambda: main(sys.argv[1:])))
