"""Real data from outside the checkout: in the folder that SHARED_DATA names, and nowhere else."""

import os
from pathlib import Path

import pytest


def shared(name: str) -> Path:
    """A file of it, which is not there where the variable is not set."""
    return Path(os.environ.get("SHARED_DATA") or "/nonexistent", name)


def needs_shared(name: str) -> pytest.MarkDecorator:
    reason = f"it takes {name}, which is not there: set SHARED_DATA to the folder of real data"
    return pytest.mark.skipif(not shared(name).exists(), reason=reason)
