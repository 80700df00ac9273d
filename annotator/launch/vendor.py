"""`make vendor`: fetches the third-party files of static/vendor from npm, each package by its version and its hash.

Needs npm. To take a newer version, change it in PACKAGES with its hash, which `npm view NAME@VERSION dist.integrity`
prints, run this, and put the new folder into the templates and scripts that name the old one.
"""

import base64
import hashlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

VENDOR = Path(__file__).resolve().parents[2] / "static" / "vendor"


@dataclass(frozen=True)
class Package:
    """A package of npm. `files` maps patterns of its files to the folders that they go into, `.` being its own.

    `integrity` is the SHA-512 of the package's archive, in base64, as npm states it.
    """

    name: str
    version: str
    integrity: str
    files: Mapping[str, str]

    @property
    def folder(self) -> str:
        return f"{self.name.rpartition('/')[2]}-{self.version}"


PACKAGES = (
    Package(
        "echarts",
        "6.1.0",
        "q0yaFPggC9FUdsWH4blavRWFmxdrIodbkoKNAjJudAI6CA9gNPxHtV2RcZNEepZVlk4yvBYkOkbk6HIVpIyHZA==",
        {"LICENSE": ".", "NOTICE": ".", "licenses/*": ".", "dist/echarts.esm.min.js": "."},
    ),
    Package(
        "@fontsource-variable/inter",
        "5.3.0",
        "OupL48va4JNofb97w6NYeF9S7W/kHNKM0Er8Dem5nqi4jeOLrVJDoE8tZEpnMJmtkvNbB1EIPPwHcdkF6b1oUA==",
        {"LICENSE": ".", "files/inter-*-wght-normal.woff2": "."},
    ),
    Package(
        "katex",
        "0.19.1",
        "jG8uKntjSEcm2EpQOh0XturpPuuC9r3Sq5HLHdsFdWZT27E672SF19QEi+of0/YeOy15lDgRhKvr5614uRrEfA==",
        {"LICENSE": ".", "dist/katex.min.js": ".", "dist/katex.min.css": ".", "dist/fonts/*.woff2": "fonts"},
    ),
)


def main() -> int:
    if shutil.which("npm") is None:
        print("make vendor needs npm, which comes with Node.js.", file=sys.stderr)
        return 1
    for package in PACKAGES:
        print(f"{package.folder}: {store(package, archive_of(package), VENDOR)} files")
    return 0


def archive_of(package: Package) -> bytes:
    """Returns the package's archive as npm has it."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["npm", "pack", "--silent", "--pack-destination", folder, f"{package.name}@{package.version}"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return next(Path(folder).glob("*.tgz")).read_bytes()


def store(package: Package, archive: bytes, vendor: Path) -> int:
    """Writes the package's files into a folder of their own in place of what is there; returns how many.

    Raises:
        SystemExit: the archive is not the one that was chosen, or lacks some of the files. Nothing is written then.
    """
    found = base64.b64encode(hashlib.sha512(archive).digest()).decode()
    if found != package.integrity:
        sys.exit(f"{package.name} {package.version} has the hash {found}, not {package.integrity}. Nothing is changed.")
    files = dict(_chosen(package, archive))
    for pattern in package.files:
        if not any(fnmatch(name, pattern) for name, _place in files):
            sys.exit(f"{package.name} {package.version} has no {pattern}. Nothing is changed.")
    folder = vendor / package.folder
    shutil.rmtree(folder, ignore_errors=True)
    for (_name, place), content in files.items():
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_bytes(content)
    return len(files)


def _chosen(package: Package, archive: bytes) -> Iterator[tuple[tuple[str, str], bytes]]:
    """Yields the name in the archive, the place in the folder, and the content of each file that is wanted."""
    with tempfile.TemporaryFile() as file:
        file.write(archive)
        file.seek(0)
        with tarfile.open(fileobj=file) as entries:
            for entry in entries:
                name = entry.name.partition("/")[2]
                place = next((place for pattern, place in package.files.items() if fnmatch(name, pattern)), None)
                if place is None or not entry.isfile():
                    continue
                content = entries.extractfile(entry).read()  # type: ignore[union-attr]  # a file has content
                yield (name, str(Path(place, Path(name).name))), _changed(name, content)


def _changed(name: str, content: bytes) -> bytes:
    """Returns a style sheet with only the WOFF2 fonts, as every browser that we support reads them."""
    if not name.endswith(".css"):
        return content
    return re.sub(rb',url\([^)]*\.(?:woff|ttf)\) format\("[^"]*"\)', b"", content)


if __name__ == "__main__":
    sys.exit(main())
