"""Typed, checked values from the environment, for settings.py; a bad one stops the start with its variable's name."""

import json
import os
import re
import shlex
import sys
from dataclasses import dataclass
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
    if not (value.isascii() and value.isdigit()):
        raise ImproperlyConfigured(f"{name} is {value!r}: write a whole number")
    return int(value)


def count(name: str, default: int) -> int:
    """Reads a number that is at least 1, such as that of processes.

    Raises:
        ImproperlyConfigured: the variable is 0, or no whole number.
    """
    if not (value := number(name, default)):
        raise ImproperlyConfigured(f"{name} is 0: write a whole number from 1 on")
    return value


def choice(name: str, *known: str) -> str:
    """Reads one of the `known` words, of which the first is the default."""
    value = os.environ.get(name, "") or known[0]
    if value not in known:
        raise ImproperlyConfigured(f"{name} is {value!r}: write {', '.join(known[:-1])} or {known[-1]}")
    return value


def words(name: str, *known: str) -> frozenset[str]:
    """Reads some of the `known` words, with commas between; none by default."""
    chosen = frozenset(word.strip() for word in os.environ.get(name, "").split(",") if word.strip())
    if unknown := sorted(chosen.difference(known)):
        raise ImproperlyConfigured(f"{name} has {unknown[0]!r}: write {', '.join(known[:-1])} or {known[-1]}")
    return chosen


def cores() -> int:
    # Those that we may run on: in a container the machine may have many more.
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


STORES = ("s3", "gs", "az")


def artifacts(name: str, default: Path) -> tuple[Path, str]:
    """Returns the folder of the artifacts, and the address of the object store that keeps them; empty for none.

    Raises:
        ImproperlyConfigured: the address is of no kind that we know, or names no bucket.
    """
    value = os.environ.get(name, "").strip()
    address = urlsplit(value)
    if not value:
        return default, ""
    if address.scheme == "file" and not address.netloc and address.path.startswith("/"):
        return Path(unquote(address.path)).resolve(), ""
    if address.scheme in STORES and address.netloc:
        return default, value.rstrip("/")
    raise ImproperlyConfigured(f"{name} is {value!r}: write file:///FOLDER, s3://BUCKET, gs://BUCKET or az://CONTAINER")


LAUNCHER_WORDS = ("command", "stage", "directory")


def launcher(name: str) -> tuple[str, ...]:
    """Returns the words of a command that starts trainers, with its placeholders; none for `local`.

    Raises:
        ImproperlyConfigured: it is no command, has an unknown placeholder, or would not say what is to be run.
    """
    value = os.environ.get(name, "").strip()
    if value in ("", "local"):
        return ()
    try:
        words = tuple(shlex.split(value))
    except ValueError as error:
        raise ImproperlyConfigured(f"{name} is {value!r}: it cannot be divided into words ({error})") from None
    used = set(re.findall(r"\{(\w*)\}", " ".join(words)))
    if unknown := sorted(used.difference(LAUNCHER_WORDS)):
        known = ", ".join(f"{{{word}}}" for word in LAUNCHER_WORDS)
        raise ImproperlyConfigured(f"{name} has {{{unknown[0]}}}: the placeholders are {known}")
    if "command" in used and "{command}" not in words:
        raise ImproperlyConfigured(f"{name}: {{command}} stands for several words, so it must be a word by itself")
    if "command" not in used and not {"stage", "directory"} <= used:
        raise ImproperlyConfigured(
            f"{name} is {value!r}: write `local`, or a command with {{command}}, or with {{stage}} and {{directory}}, "
            "such as: srun --gpus=8 {command}"
        )
    if "{" in words[0]:
        raise ImproperlyConfigured(f"{name} is {value!r}: it must begin with the program that launches")
    return words


def backbones(listed: str, default: str) -> tuple[dict[str, str], str]:
    """Returns the backbones that projects may train on, as directory or Hub id by name, and the default's name.

    Args:
        listed: A JSON object, or name=source pairs with commas between.
        default: One of these names, or a source; the last part of a source becomes its name.

    Raises:
        ImproperlyConfigured: `listed` cannot be read, or a name is not allowed or stands for two sources.
    """
    pairs = _named_sources("REWARD_BACKBONES", listed)
    sources = {"minilm": "minilm"}
    name = default if default in pairs else Path(default).name
    for key, source in [*pairs.items(), *([] if default in pairs else [(name, default)])]:
        _require_named("REWARD_BACKBONES or REWARD_BACKBONE", key, source)
        if sources.setdefault(key, source) != source:
            raise ImproperlyConfigured(f"REWARD_BACKBONES and REWARD_BACKBONE give {key!r} two sources")
    return sources, name


def policies(name: str) -> dict[str, str]:
    """Returns the language models that projects may align, as directory or Hub id by name; by default none.

    Raises:
        ImproperlyConfigured: the value cannot be read, or a name is not allowed.
    """
    pairs = _named_sources(name, os.environ.get(name, ""))
    for key, source in pairs.items():
        _require_named(name, key, source)
    return pairs


def _named_sources(name: str, listed: str) -> dict[str, str]:
    """Returns what is listed as a JSON object or as name=source pairs; raises ImproperlyConfigured for other text."""
    try:
        if listed.strip().startswith("{"):
            return dict(json.loads(listed))
        return dict([part.strip() for part in pair.split("=", 1)] for pair in listed.split(",") if pair.strip())
    except ValueError:
        raise ImproperlyConfigured(
            f'{name} is neither a JSON object like {{"name": "directory or Hub id"}} nor name=source,name=source'
        ) from None


def _require_named(variables: str, key: str, source: object) -> None:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", key) or not isinstance(source, str) or not source:
        raise ImproperlyConfigured(
            f"{variables} names {key!r}: a name is letters, digits, dots, dashes and underscores, at most 64, and "
            "stands for a directory or a Hub id"
        )


def database(url: str) -> dict[str, object]:
    """Returns Django's DATABASES entry for a postgresql:// URL, whose query parameters become libpq options.

    Raises:
        ImproperlyConfigured: the URL has another scheme.
    """
    parts = urlsplit(url)
    if parts.scheme not in {"postgresql", "postgres"}:
        raise ImproperlyConfigured(f"DATABASE_URL starts with {parts.scheme!r}: Rewardloop needs postgresql://")
    options: dict[str, object] = dict(parse_qsl(parts.query))
    host = str(options.pop("host", "")) or unquote(parts.hostname or "")
    return {
        "ENGINE": "annotator.infrastructure.db.postgresql",
        "NAME": unquote(parts.path.lstrip("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": host,
        "PORT": str(parts.port or ""),
        "OPTIONS": options,
    }


@dataclass(frozen=True)
class MailServer:
    """The server that sends our mails; without a host none are sent."""

    host: str = ""
    port: int = 25
    user: str = ""
    password: str = ""
    starts_tls: bool = False
    tls_from_the_start: bool = False
    sender: str = ""


def mail_server(name: str) -> MailServer:
    """Reads `smtp://user:password@host:587?tls=1&from=rewardloop@example.org`, or smtps:// for TLS from the start.

    Raises:
        ImproperlyConfigured: the URL is malformed, or does not say who the mails are from.
    """
    value = os.environ.get(name, "").strip()
    if not value:
        return MailServer()
    # The value itself is not repeated in the error: it holds a password.
    wanted = "write smtp://user:password@host:587?tls=1&from=name@example.org"
    parts = urlsplit(value)
    try:
        host, port = parts.hostname, parts.port
    except ValueError as wrong:
        raise ImproperlyConfigured(f"{name} has no valid port: {wanted}") from wrong
    if parts.scheme not in {"smtp", "smtps"} or not host or parts.path.strip("/") or parts.fragment:
        raise ImproperlyConfigured(f"{name} is no address of a mail server: {wanted}")
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    if unknown := sorted(set(options) - {"tls", "from"}):
        raise ImproperlyConfigured(f"{name} has the option {unknown[0]!r}: known are tls and from")
    if options.get("tls", "0") not in {"0", "1"}:
        raise ImproperlyConfigured(f"{name} has tls={options['tls']!r}: write 1 or 0")
    secure, user = parts.scheme == "smtps", unquote(parts.username or "")
    if secure and "tls" in options:
        raise ImproperlyConfigured(f"{name} begins with smtps:// and has tls=: TLS is either begun or there at once")
    sender = options.get("from", user)
    if not re.fullmatch(r"[^@\s<>,]+@[^@\s<>,]+", sender):
        raise ImproperlyConfigured(f"{name} does not say whom mails are from: add from=name@example.org")
    return MailServer(
        host=host,
        port=port or (465 if secure else 587 if options.get("tls") == "1" else 25),
        user=user,
        password=unquote(parts.password or ""),
        starts_tls=options.get("tls") == "1",
        tls_from_the_start=secure,
        sender=sender,
    )


def secret_key(var_dir: Path) -> str:
    """Returns SECRET_KEY, or the key that `make run` keeps in VAR_DIR.

    Commands that sign nothing run without one; for any other it is empty, which Django refuses.
    """
    file = var_dir / "secret-key"
    if key := os.environ.get("SECRET_KEY", ""):
        return key
    if file.exists():
        return file.read_text().strip()
    words = {Path(word).name for word in sys.argv[:2]} | ({"pytest"} if "pytest" in sys.modules else set())
    return "not-secret-" + "0" * 50 if {"test", "check", "makemigrations", "pytest"} & words else ""


def server(name: str, default: str, *, var_dir: Path) -> str:
    """Returns the variable, or the server's address that a running `make run` publishes for commands beside it."""
    if address := os.environ.get(name, ""):
        return address
    try:
        return str(json.loads((var_dir / "services.json").read_text()).get(name, default))
    except (FileNotFoundError, PermissionError):
        return default
