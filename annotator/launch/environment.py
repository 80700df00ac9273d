"""Typed, checked values from the environment, for settings.py; a bad one stops the start with its variable's name."""

import json
import os
import re
import sys
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured


def flag(name: str) -> bool:
    value = os.environ.get(name, "0").strip().lower()
    if value not in {"0", "1", "true", "false", ""}:
        raise ImproperlyConfigured(f"{name} is {value!r}: write 1 or 0")
    return value in {"1", "true"}


def number(name: str, default: int) -> int:
    value = os.environ.get(name, str(default))
    if not value.isdigit():
        raise ImproperlyConfigured(f"{name} is {value!r}: write a whole number")
    return int(value)


def count(name: str, default: int) -> int:
    """A number of things of which there is at least one."""
    if not (value := number(name, default)):
        raise ImproperlyConfigured(f"{name} is 0: write a whole number from 1 on")
    return value


def cores() -> int:
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def hours(name: str, default: float) -> float:
    value = os.environ.get(name, str(default))
    try:
        hours = float(value)
    except ValueError:
        hours = 0.0
    if not 0 < hours <= 24 * 365:
        raise ImproperlyConfigured(f"{name} is {value!r}: write a number of hours, at most {24 * 365}")
    return hours


def backbones(listed: str, default: str) -> tuple[dict[str, str], str]:
    """What projects may train on, a directory or Hub id by its name, and the name of the default.

    listed: a JSON object, or name=source pairs with commas between. default: a name, or a source that the last part of
    it becomes the name of.
    """
    try:
        pairs = json.loads(listed) if listed.strip().startswith("{") else dict(_pairs(listed))
    except ValueError:
        raise ImproperlyConfigured(
            'REWARD_BACKBONES is neither a JSON object like {"name": "directory or Hub id"} nor name=source,name=source'
        ) from None
    sources = {"minilm": "minilm"}
    name = default if default in pairs else Path(default).name
    for key, source in [*pairs.items(), *([] if default in pairs else [(name, default)])]:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", key) or not isinstance(source, str) or not source:
            raise ImproperlyConfigured(
                f"REWARD_BACKBONES or REWARD_BACKBONE names {key!r}: a name is letters, digits, dots, dashes and "
                "underscores, at most 64, and stands for a directory or a Hub id"
            )
        if sources.setdefault(key, source) != source:
            raise ImproperlyConfigured(f"REWARD_BACKBONES and REWARD_BACKBONE give {key!r} two sources")
    return sources, name


def _pairs(listed: str) -> list[list[str]]:
    return [[part.strip() for part in pair.split("=", 1)] for pair in listed.split(",") if pair.strip()]


def database(url: str) -> dict[str, object]:
    """Django's DATABASES entry for a postgresql:// URL; query parameters become libpq options."""
    parts = urlsplit(url)
    if parts.scheme not in {"postgresql", "postgres"}:
        raise ImproperlyConfigured(f"DATABASE_URL starts with {parts.scheme!r}: Rewardloop needs postgresql://")
    options: dict[str, object] = dict(parse_qsl(parts.query))
    host = str(options.pop("host", "")) or unquote(parts.hostname or "")
    return {
        "ENGINE": "annotator.db.postgresql",
        "NAME": unquote(parts.path.lstrip("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": host,
        "PORT": str(parts.port or ""),
        "OPTIONS": options,
    }


def secret_key(var_dir: Path) -> str:
    """SECRET_KEY, or the one that `make run` keeps in VAR_DIR; commands that sign nothing need none."""
    kept = var_dir / "secret-key"
    if key := os.environ.get("SECRET_KEY", ""):
        return key
    if kept.exists():
        return kept.read_text().strip()
    return "not-secret-" + "0" * 50 if {"test", "check", "makemigrations", "pytest"} & _words() else ""


def server(name: str, default: str, *, var_dir: Path) -> str:
    """The variable, or the address of the servers that a running `make run` left for commands beside it."""
    if address := os.environ.get(name, ""):
        return address
    left = var_dir / "services.json"
    try:
        return str(json.loads(left.read_text()).get(name, default))
    except (FileNotFoundError, PermissionError):
        return default


def _words() -> set[str]:
    return {Path(word).name for word in sys.argv[:2]} | ({"pytest"} if "pytest" in sys.modules else set())
