"""The lock in `requirements/`: every package with its version and hashes, a file for each purpose.

`python -m annotator.launch.lock` writes it from pyproject.toml and keeps the versions that still fit; with `--upgrade`
it takes the newest. `--check` asks whether the packages can be installed on every platform and Python that we name.
A package stands in the first file of FILES that needs it, so an installation takes several files and no dependencies
besides: `uv pip sync` or `pip install --no-deps --require-hashes`.
"""

import hashlib
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / "requirements"
OLDEST_PYTHON = "3.11"
OLDEST_MACOS = "14.0"  # of torch
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
PLATFORMS = ("x86_64-manylinux_2_28", "aarch64-manylinux_2_28", "aarch64-apple-darwin")
FILES = ("installer", "web", "embedded", "learning", "hub", "dev")
"""`installer` is uv, `web` the project with the extra `server`; the others are extras."""
TORCH = ("torch-pypi", "torch-cpu")
"""Either of these, beside `learning`. Both have the same torch: one with CUDA (without it on macOS), one without."""
LOCKED = [FOLDER / f"{name}.txt" for name in (*FILES, TORCH[0])]
CUDA = ("cuda-", "nvidia-", "triton")
"""What only torch's CUDA build asks for."""
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
OUT_OF_REACH = ("error sending request", "dns error", "Failed to fetch", "Could not connect", "timed out")
HEADER = "# Written by `make lock`; see annotator/launch/lock.py.\n"


class LockFailed(Exception):
    """uv could not do what it was asked for; the message is its own."""


def main(words: Sequence[str]) -> int:
    try:
        if list(words) == ["--check"]:
            print(check())
        else:
            write(upgrade="--upgrade" in words)
    except LockFailed as failure:
        print(failure, file=sys.stderr)
        return 1
    return 0


# Writing ---------------------------------------------------------------------------------------------------
def write(*, upgrade: bool) -> None:
    present = "".join(file.read_text() for file in LOCKED if file.exists())
    preferred = {} if upgrade else {name: version_of(block) for name, block in blocks(present).items()}
    options = ["--all-extras", "--generate-hashes"]
    locked = blocks(without_common_marker(compiled(options, preferred=preferred)))
    # One resolution for all files; what follows only asks which file needs which of these packages. Resolved one by
    # one, two files could pin different versions of a package, and could not be installed together.
    versions = {name: version_of(block) for name, block in locked.items()}
    taken: set[str] = set()
    for file in FILES:
        extra = [] if file == "installer" else ["--extra", "server" if file == "web" else file]
        requirement = "uv" if file == "installer" else ""
        names = blocks(compiled(extra, requirement=requirement, constraints=versions)).keys() - taken
        taken |= names
        # Apart from `learning`, as a machine without an NVIDIA driver installs torch-cpu.txt in its place.
        cuda = {name for name in names if name == "torch" or name.startswith(CUDA)}
        for part, chosen in (("torch-pypi", cuda), (file, names - cuda)):
            if chosen or part == file:
                (FOLDER / f"{part}.txt").write_text(HEADER + "".join(locked[name] for name in sorted(chosen)))
    write_cpu_torch(versions["torch"])


def write_cpu_torch(version: str) -> None:
    """Writes the file of torch's CPU build, or keeps it where PyTorch's index is out of reach.

    Raises:
        LockFailed: the index is out of reach and the file has another version.
    """
    file = FOLDER / "torch-cpu.txt"
    requirement = f"torch=={version}+cpu"
    try:
        resolved = compiled(["--generate-hashes", "--no-deps", "--index", CPU_INDEX], requirement=requirement)
    except LockFailed as failure:
        # Better no lock than one whose two torch files have different versions.
        if requirement not in file.read_text():
            raise
        print(f"torch-cpu.txt stays as it is: {last_line(str(failure))}")
        return
    comment = "".join(line for line in file.read_text().splitlines(keepends=True) if line.startswith("#"))
    file.write_text(comment + blocks(resolved)["torch"])


def compiled(
    options: Sequence[str],
    *,
    requirement: str = "",
    preferred: dict[str, str] | None = None,
    constraints: dict[str, str] | None = None,
) -> str:
    """Returns uv's resolution of pyproject.toml, or of one requirement, as the text of a requirements file.

    uv drops a preferred version that does not fit, and fails on a constraint that does not.
    """
    with tempfile.TemporaryDirectory() as folder:
        # uv takes the pins in its output file as preferences.
        output, constraint = Path(folder, "output.txt"), Path(folder, "constraints.txt")
        for file, versions in ((output, preferred), (constraint, constraints)):
            file.write_text("".join(f"{name}=={version}\n" for name, version in (versions or {}).items()))
        command = ["uv", "pip", "compile", "-" if requirement else "pyproject.toml", "--universal", "--no-header"]
        command += ["--python-version", OLDEST_PYTHON, "--no-annotate", "--only-binary", ":all:"]
        command += ["--output-file", str(output), "--constraints", str(constraint), "--quiet", *options]
        run_uv(command, text=requirement)
        return output.read_text()


def run_uv(command: Sequence[str], *, text: str = "") -> None:
    environment = {**os.environ, "UV_INDEX_STRATEGY": "unsafe-best-match", "MACOSX_DEPLOYMENT_TARGET": OLDEST_MACOS}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, input=text, capture_output=True, text=True, check=False, timeout=600
    )
    if done.returncode:
        raise LockFailed(done.stderr.strip())


def blocks(text: str) -> dict[str, str]:
    """Returns the lines of each package by its name: the requirement and the hashes below it."""
    pinned: dict[str, str] = {}
    name = ""
    for line in text.splitlines(keepends=True):
        if match := re.match(r"([a-z0-9][a-z0-9._-]*)==", line):
            name = match[1]
        if name and not line.startswith("#"):
            pinned[name] = pinned.get(name, "") + line
    return pinned


def without_common_marker(text: str) -> str:
    """Removes the marker that Django has: Django is needed on every platform, so its marker says nothing."""
    match = re.search(r"^django==[^;]*?( ;.*?) \\$", text, re.MULTILINE)
    return text.replace(f"{match[1]} \\\n", " \\\n") if match else text


def version_of(block: str) -> str:
    return re.split(r"[ ;\\]", block.split("==", maxsplit=1)[1], maxsplit=1)[0].strip()


# Checking --------------------------------------------------------------------------------------------------
def check() -> str:
    """Returns a sentence on whether each platform has a wheel of each package. Asks the index once for each lock.

    Raises:
        LockFailed: a platform lacks a wheel.
    """
    stamp = Path(sysconfig.get_path("data"), "lock-checked")
    if stamp.exists() and stamp.read_text() == digest():
        return "The lock resolves on every platform, as it did before."
    try:
        for platform in PLATFORMS:
            for python in PYTHONS:
                check_wheels(platform, python)
    except LockFailed as failure:
        if any(words in str(failure) for words in OUT_OF_REACH):
            return f"The package index is out of reach, so other platforms were not checked: {last_line(str(failure))}"
        raise
    stamp.write_text(digest())
    return f"The lock resolves on {', '.join(PLATFORMS)} with Python {', '.join(PYTHONS)}."


def check_wheels(platform: str, python: str) -> None:
    """Asks the index for a wheel of each package; it downloads no package and installs none.

    Raises:
        LockFailed: a package has no wheel for this platform and Python.
    """
    with tempfile.TemporaryDirectory() as empty:
        command = ["uv", "pip", "install", "--dry-run", "--no-deps", "--require-hashes", "--only-binary", ":all:"]
        command += ["--target", empty, "--python-platform", platform, "--python-version", python]
        command += [word for file in LOCKED for word in ("--requirements", str(file))]
        try:
            run_uv(command)
        except LockFailed as failure:
            raise LockFailed(f"{platform}, Python {python}: {failure}") from None


def digest() -> str:
    # This module counts too: it names the platforms and the Pythons.
    files = sorted(FOLDER.glob("*.txt"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in (*files, Path(__file__)))).hexdigest()


def last_line(text: str) -> str:
    return text.strip().splitlines()[-1].strip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
