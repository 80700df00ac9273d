"""Logs and errors of earlier runs held folders of this machine, which managers read; settings stay as they were.

The rule stands here as it was then.
"""

import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import migrations

TOLD = ("log", "error", "progress")
_PATH = re.compile(r"(?<![\w.:/~\\-])(?:~|file://)?/(?:[^\s/:'\"<>|,;()\[\]{}]+/)+([^\s/:'\"<>|,;()\[\]{}]*)")
"""An absolute path of two parts or more. A URL's has a letter, a colon or a slash before it."""


def without_places(text: str) -> str:
    """The text with our own folders left out of paths, and of other absolute paths all but the last part."""
    for folder, word in _folders():
        text = re.sub(rf"{re.escape(folder)}(/|(?![\w-]|\.\w))", rf"{word}\1" if word else "", text)
    return _PATH.sub(r".../\1", text)


def value_without_places(value: Any) -> Any:
    """The same for every text in what JSON holds."""
    if isinstance(value, str):
        return without_places(value)
    if isinstance(value, dict):
        return {key: value_without_places(part) for key, part in value.items()}
    if isinstance(value, list):
        return [value_without_places(part) for part in value]
    return value


def _folders() -> Iterator[tuple[str, str]]:
    """Ours, the innermost first, each with what stands for it. Their names may hold spaces, which no pattern tells."""
    known = {str(settings.ARTIFACTS): "artifacts", str(settings.VAR_DIR): "var", str(settings.BASE_DIR): ""}
    known |= {sys.prefix: "python", tempfile.gettempdir(): "tmp", str(Path.home()): "home"}
    sources = {source: name for name, source in settings.REWARD_BACKBONES.items() if source.startswith("/")}
    everything = {folder.rstrip("/"): word for folder, word in (known | sources).items()}
    return ((folder, everything[folder]) for folder in sorted(everything, key=len, reverse=True) if folder)


def leave_out(apps: Any, schema_editor: Any) -> None:
    for run in apps.get_model("rewards", "TrainingRun").objects.only(*TOLD).iterator(chunk_size=100):
        before = {name: getattr(run, name) for name in TOLD}
        after = {name: value_without_places(value) for name, value in before.items()}
        if after != before:
            for name, value in after.items():
                setattr(run, name, value)
            run.save(update_fields=list(TOLD))


class Migration(migrations.Migration):
    dependencies = [
        ("rewards", "0007_time_that_runs_worked"),
    ]

    operations = [
        migrations.RunPython(leave_out, migrations.RunPython.noop),
    ]
