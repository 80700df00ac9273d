"""Checks that a score lies on its scale, whose lowest level is 0."""

from __future__ import annotations

import json
from typing import Any


def on_scale(name: str, value: Any, levels: int) -> float:
    """Returns the value of a row for this attribute or aspect; raises ValueError unless it is on its scale."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= levels - 1:
        raise ValueError(f"{name} is {json.dumps(value)}, not a number from 0 to {levels - 1}")
    return float(value)
