"""Pools the states of tokens by segment: the mean over the tokens that a segment owns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, chain

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from rewards.learning.segments import Range


@dataclass(frozen=True)
class SegmentTokens:
    """Where the tokens of each segment of a batch are: segment after segment, in the order of the items.

    `places` [owned tokens] counts through all token slots of the batch. `bounds` [segments + 1] are the cumulative
    numbers of tokens. A slot that several items share may be there several times.
    """

    places: Tensor
    bounds: Tensor


def places_of(segments: Sequence[Range], *, own: int, shared: int = 0, shared_start: int = 0) -> list[list[int]]:
    """Returns the slots of each segment's tokens.

    The first `shared` tokens of the item are in the slots from `shared_start` on, the others in those from `own` on.
    """
    return [
        [shared_start + token if token < shared else own + token - shared for token in range(start, end)]
        for start, end in segments
    ]


def segment_tokens(places: Sequence[Sequence[int]], *, device: torch.device) -> SegmentTokens | None:
    """Returns the slots of all segments of a batch as tensors; None where it has no segments."""
    if not places:
        return None
    bounds = list(accumulate(map(len, places), initial=0))
    return SegmentTokens(
        torch.tensor(list(chain.from_iterable(places)), dtype=torch.int64, device=device),
        torch.tensor(bounds, dtype=torch.int64, device=device),
    )


def segment_means(states: Tensor, segments: SegmentTokens | None) -> Tensor:
    """[segments, hidden]: the mean of states [slots, hidden] over each segment's tokens, 0 for a segment without any.

    Each mean is summed by itself, so it does not depend on which segments are beside it.
    """
    if segments is None:
        return states[:0]
    return embedding_bag(segments.places, states, segments.bounds, mode="mean", include_last_offset=True)
