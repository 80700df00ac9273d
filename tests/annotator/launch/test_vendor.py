"""Third-party files of the pages, fetched from npm by their hashes."""

import base64
import hashlib
import io
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from annotator.launch.vendor import PACKAGES, VENDOR, Package, store

CSS = b'@font-face{src:url(a.woff2) format("woff2"),url(a.woff) format("woff"),url(a.ttf) format("truetype")}'
FILES = {"LICENSE": b"free", "dist/a.min.css": CSS, "dist/fonts/a.woff2": b"font", "dist/fonts/a.ttf": b"old font"}


def archive(files: dict[str, bytes]) -> bytes:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w:gz") as entries:
        for name, content in files.items():
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size = len(content)
            entries.addfile(entry, io.BytesIO(content))
    return written.getvalue()


def package(content: bytes) -> Package:
    wanted = {"LICENSE": ".", "dist/a.min.css": ".", "dist/fonts/*.woff2": "fonts"}
    return Package("@them/a", "1.2.3", base64.b64encode(hashlib.sha512(content).digest()).decode(), wanted)


def test_the_wanted_files_replace_the_folder(tmp_path: Path) -> None:
    old = tmp_path / "a-1.2.3" / "gone.js"
    old.parent.mkdir()
    old.touch()
    content = archive(FILES)
    assert store(package(content), content, tmp_path) == 3
    kept = {str(path.relative_to(old.parent)): path.read_bytes() for path in old.parent.rglob("*") if path.is_file()}
    assert kept == {
        "LICENSE": b"free",
        "a.min.css": b'@font-face{src:url(a.woff2) format("woff2")}',
        "fonts/a.woff2": b"font",
    }


def test_another_archive_than_the_chosen_one_changes_nothing(tmp_path: Path) -> None:
    content = archive(FILES)
    with pytest.raises(SystemExit, match="Nothing is changed"):
        store(package(content), archive(FILES | {"LICENSE": b"other"}), tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_missing_file_changes_nothing(tmp_path: Path) -> None:
    content = archive(FILES)
    more = replace(package(content), files={"LICENSE": ".", "dist/b.js": "."})
    with pytest.raises(SystemExit, match=r"has no dist/b\.js"):
        store(more, content, tmp_path)
    assert not list(tmp_path.iterdir())


def test_every_folder_is_of_a_package_with_its_licence() -> None:
    folders = {path.name for path in VENDOR.iterdir() if path.is_dir()}
    assert folders == {one.folder for one in PACKAGES}
    for one in PACKAGES:
        assert (VENDOR / one.folder / "LICENSE").read_text().strip()
        assert f"`{one.folder}/`" in (VENDOR / "README.md").read_text()
