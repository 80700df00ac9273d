"""Third-party files of the pages, fetched from npm by its lock."""

import json
from pathlib import Path

import pytest

from annotator.launch.vendor import LOCK, VENDOR, folders, store

CSS = b'@font-face{src:url(a.woff2) format("woff2"),url(a.woff) format("woff"),url(a.ttf) format("truetype")}'
FILES = {"LICENSE": b"free", "dist/a.min.css": CSS, "dist/fonts/a.woff2": b"font", "dist/fonts/a.ttf": b"old font"}
WANTED = {"LICENSE": ".", "dist/a.min.css": ".", "dist/fonts/*.woff2": "fonts"}


@pytest.fixture
def package(tmp_path: Path) -> Path:
    for name, content in FILES.items():
        file = tmp_path / "package" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return tmp_path / "package"


def test_the_wanted_files_replace_the_folder(package: Path, tmp_path: Path) -> None:
    folder = tmp_path / "a-1.2.3"
    folder.mkdir()
    (folder / "gone.js").touch()
    assert store(package, folder, WANTED) == 3
    kept = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert kept == {
        "LICENSE": b"free",
        "a.min.css": b'@font-face{src:url(a.woff2) format("woff2")}',
        "fonts/a.woff2": b"font",
    }


def test_a_missing_file_changes_nothing(package: Path, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"has no dist/b\.js"):
        store(package, tmp_path / "a-1.2.3", WANTED | {"dist/b.js": "."})
    assert not (tmp_path / "a-1.2.3").exists()


def test_every_folder_is_of_a_package_with_its_licence() -> None:
    assert {path for path in VENDOR.iterdir() if path.is_dir()} == set(folders().values())
    for folder in folders().values():
        assert (folder / "LICENSE").read_text().strip()
        assert f"`{folder.name}/`" in (VENDOR / "README.md").read_text()


def test_every_package_is_locked_by_a_hash() -> None:
    packages = json.loads((LOCK / "package-lock.json").read_text())["packages"]
    assert all(package["integrity"].startswith("sha512-") for name, package in packages.items() if name)
    assert {f"node_modules/{name}" for name in folders()} <= packages.keys()
