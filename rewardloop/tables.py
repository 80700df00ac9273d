"""Rows as tables of other packages, which are imported only where somebody asks for one."""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from rewardloop.errors import NotSetUp


def frame_of(rows: Sequence[dict[str, Any]]) -> Any:
    """Returns a pandas.DataFrame."""
    return _package("pandas").DataFrame(rows)


def dataset_of(rows: Sequence[dict[str, Any]]) -> Any:
    """Returns a datasets.Dataset."""
    return _package("datasets").Dataset.from_list(list(rows))


def _package(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as missing:
        raise NotSetUp(f"This needs the package {name}: pip install {name}") from missing
