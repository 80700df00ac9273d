"""The lock is good on every platform that we name, or it is said why nobody could tell."""

import sysconfig
from pathlib import Path

import pytest

from annotator.launch import lock


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The platforms and Pythons that uv was asked about, in an environment that has not checked anything yet."""
    seen: list[str] = []
    monkeypatch.setattr(sysconfig, "get_path", lambda _name: str(tmp_path))
    monkeypatch.setattr(lock, "run_uv", lambda command, text="": seen.append(" ".join(command)))
    return seen


def fails_with(monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    def fail(*_: object, **__: object) -> None:
        raise lock.LockFailed(words)

    monkeypatch.setattr(lock, "run_uv", fail)


def test_every_platform_is_asked_about_with_every_python(asked: list[str]) -> None:
    lock.check()
    assert len(asked) == len(lock.PLATFORMS) * len(lock.PYTHONS) == 12
    assert "--python-platform aarch64-apple-darwin --python-version 3.14" in asked[-1]


def test_the_same_lock_is_not_asked_about_again(asked: list[str]) -> None:
    lock.check()
    asked.clear()
    assert "as it did before" in lock.check()
    assert not asked


def test_a_platform_without_a_wheel_is_named(asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    fails_with(monkeypatch, "torch has no wheels with a matching platform tag")
    with pytest.raises(lock.LockFailed, match=r"^x86_64-manylinux_2_28, Python 3.11: torch has no wheels"):
        lock.check()


def test_without_a_network_the_check_says_so_and_passes(asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    fails_with(monkeypatch, "error: Failed to fetch\n  cause: dns error")
    assert "out of reach, so other platforms were not checked" in lock.check()
    assert lock.main(["--check"]) == 0


def test_hashes_belong_to_the_package_above_them() -> None:
    text = "# comment\na==1 \\\n    --hash=x\nb==2 ; c == 'd' \\\n    --hash=y \\\n    --hash=z\n"
    assert lock.blocks(text) == {"a": "a==1 \\\n    --hash=x\n", "b": text.split("--hash=x\n")[1]}
    assert lock.version_of(lock.blocks(text)["b"]) == "2"
