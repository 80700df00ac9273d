"""`make vendor`: fetches the third-party files of static/vendor from npm, by the versions and hashes of its lock.

Needs npm. To take a newer version, change it in requirements/package.json, run `npm install --package-lock-only` there
and then this, and put the new folder into the templates and scripts that name the old one.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VENDOR, LOCK = ROOT / "static" / "vendor", ROOT / "requirements"
FILES = {
    "echarts": {"LICENSE": ".", "NOTICE": ".", "licenses/*": ".", "dist/echarts.esm.min.js": "."},
    "@fontsource-variable/inter": {"LICENSE": ".", "files/inter-*-wght-normal.woff2": "."},
    "idb": {"LICENSE": ".", "build/index.js": "."},
    "katex": {"LICENSE": ".", "dist/katex.min.js": ".", "dist/katex.min.css": ".", "dist/fonts/*.woff2": "fonts"},
}
"""By package, patterns of its files and the folders that they go into, `.` being its own."""


def folders() -> dict[str, Path]:
    """Returns the folder of each package, which is named after its version."""
    versions: dict[str, str] = json.loads((LOCK / "package.json").read_text())["dependencies"]
    return {name: VENDOR / f"{name.rpartition('/')[2]}-{version}" for name, version in versions.items()}


def main() -> int:
    if shutil.which("npm") is None:
        print("make vendor needs npm, which comes with Node.js.", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as place:
        for name in ("package.json", "package-lock.json"):
            shutil.copy(LOCK / name, place)
        subprocess.run(["npm", "ci", "--ignore-scripts", "--silent"], cwd=place, check=True)
        for name, folder in folders().items():
            print(f"{folder.name}: {store(Path(place, 'node_modules', name), folder, FILES[name])} files")
    return 0


def store(package: Path, folder: Path, wanted: Mapping[str, str]) -> int:
    """Writes the package's files in place of what is in the folder; returns how many.

    Raises:
        SystemExit: The package lacks some of the files. Nothing is written then.
    """
    files = [(file, place) for pattern, place in wanted.items() for file in sorted(package.glob(pattern))]
    for pattern in wanted:
        if not any(package.glob(pattern)):
            sys.exit(f"{folder.name} has no {pattern}. Nothing is changed.")
    shutil.rmtree(folder, ignore_errors=True)
    for file, place in files:
        (folder / place).mkdir(parents=True, exist_ok=True)
        content = file.read_bytes()
        if file.suffix == ".css":  # with only the WOFF2 fonts, which every browser that we support reads
            content = re.sub(rb',url\([^)]*\.(?:woff|ttf)\) format\("[^"]*"\)', b"", content)
        (folder / place / file.name).write_bytes(content)
    return len(files)


if __name__ == "__main__":
    sys.exit(main())
