"""Removes this machine's folders from texts, so that managers read the names of files but not where they are.

It is applied when a run's log, progress and error are stored, when older rows that were stored without it are shown,
and when a background failure is recorded.
"""

import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.conf import settings

_PATH = re.compile(r"(?<![\w.:/~\\-])(?:~|file://)?/(?:[^\s/:'\"<>|,;()\[\]{}]+/)+([^\s/:'\"<>|,;()\[\]{}]*)")
"""Matches an absolute path of two parts or more, but not that of a URL, which follows a letter, a colon or a slash."""

COMMON = ("/usr/local", "/opt/venv")
"""Where Python may be installed, which texts about other machines name as well."""


def without_places(text: str) -> str:
    """Replaces our own folders in the text by short words, and reduces other absolute paths to their last part."""
    # Listed one by one, because their names may contain spaces, at which the pattern would stop. The longest come
    # first: a folder inside another one has a word of its own.
    words = {str(settings.ARTIFACTS): "artifacts", str(settings.VAR_DIR): "var", str(settings.BASE_DIR): ""}
    words |= {sys.prefix: "python", tempfile.gettempdir(): "tmp", str(Path.home()): "home"}
    named = [*settings.REWARD_BACKBONES.items(), *settings.POLICY_BASES.items()]
    words |= {source: name for name, source in named if source.startswith("/")}
    words = {folder.rstrip("/"): word for folder, word in words.items()}
    for folder in sorted(filter(None, words), key=len, reverse=True):
        word = words[folder]
        text = re.sub(rf"{re.escape(folder)}(/|(?![\w-]|\.\w))", rf"{word}\1" if word else "", text)
    return _PATH.sub(r".../\1", text)


def value_without_places(value: Any) -> Any:
    """Applies `without_places` to every text in a JSON value; names of fields stay."""
    if isinstance(value, str):
        return without_places(value)
    if isinstance(value, dict):
        return {key: value_without_places(part) for key, part in value.items()}
    if isinstance(value, list):
        return [value_without_places(part) for part in value]
    return value


def own_folders() -> Iterator[str]:
    """Returns our own folders that a text hardly names by chance: those of two parts or more, without the common ones.

    What lies below such a folder is named by it as well.
    """
    folders = (settings.ARTIFACTS, settings.VAR_DIR, settings.BASE_DIR, sys.prefix, Path.home())
    return (str(folder) for folder in folders if len(Path(folder).parts) > 2 and str(folder) not in COMMON)
