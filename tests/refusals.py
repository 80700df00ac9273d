"""Expects a refusal by its code, as callers tell refusals apart."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from annotator.infrastructure.refusals import Refusal


@contextmanager
def refusal(code: str, match: str | None = None) -> Iterator[pytest.ExceptionInfo[Refusal]]:
    """Expects the block to end in a refusal with this code, and with a message that holds `match`."""
    with pytest.raises(Refusal, match=match) as raised:
        yield raised
    assert raised.value.code == code
