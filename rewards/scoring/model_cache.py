"""Keeps the models that this worker used last in memory. Only workers of the queue `score` import torch."""

import threading
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.conf import settings

from rewards.learning.data import Item, turns_of
from rewards.models import RewardModel

if TYPE_CHECKING:
    from rewards.learning.score import Scorer

_loading = threading.Lock()


def scorer_of(model: RewardModel) -> "Scorer":
    """Returns the loaded model; the SCORE_MODELS_KEPT models that were used last stay in memory."""
    # lru_cache lets two threads compute the same entry: the model would be in memory twice while it loads.
    with _loading:
        return _loaded(str(model.directory()))


@lru_cache(maxsize=settings.SCORE_MODELS_KEPT)
def _loaded(directory: str) -> "Scorer":
    from rewards.learning.score import load  # noqa: PLC0415  it imports torch

    return load(Path(directory), precision=settings.SCORE_PRECISION)


def as_items(items: Sequence[Mapping[str, Any]]) -> list[Item]:
    """Returns items as they come in a request's JSON as items of the learning core."""
    return [
        Item(
            str(number),
            turns_of(item["conversation"]),
            item["response"],
            tuple((start, end) for start, end in item.get("segments", ())),
        )
        for number, item in enumerate(items)
    ]
