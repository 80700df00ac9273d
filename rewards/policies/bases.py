"""The base policies that projects may align: what the operator has listed, and what lies in a folder of the artifacts.

The folder is read each time, so that a model which somebody puts there can be tried without a restart.
"""

import re
from pathlib import Path

from django.conf import settings

FOLDER = "policy-bases"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def folder() -> Path:
    return Path(settings.ARTIFACTS) / FOLDER


def bases() -> dict[str, str]:
    """Returns the directory or Hub id of each base by its name; a name in POLICY_BASES goes before a folder's."""
    there = sorted(path for path in folder().glob("*") if _NAME.fullmatch(path.name))
    found = {path.name: str(path) for path in there if (path / "config.json").is_file()}
    return {**found, **settings.POLICY_BASES}
