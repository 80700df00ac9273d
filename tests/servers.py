"""The pytest plugin that starts PostgreSQL and Redis, before pytest-django reads the settings.

Loaded by `-p tests.servers`. The servers are thrown away at the end, and end with pytest even when it is killed.
"""

import atexit
import os
import tempfile
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path

import pytest

from annotator import embedded

_stack = ExitStack()


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests() -> Generator[None, None, None]:
    """A wrapper, because those run before pytest-django's own hook."""
    folder = Path(_stack.enter_context(tempfile.TemporaryDirectory(prefix="rewardloop-tests-")))
    folder.chmod(0o711)  # ours: PostgreSQL's account has to pass through
    try:
        started = _stack.enter_context(embedded.services(folder, throwaway=True))
    except (embedded.ServiceFailed, embedded.AccountRefused) as refusal:
        raise pytest.UsageError(str(refusal)) from refusal
    os.environ.update({**started.environment, "VAR_DIR": str(folder)})
    atexit.register(_stack.close)
    return (yield)


def pytest_unconfigure() -> None:
    _stack.close()
