"""Gives each token of a response to a segment, and each segment its weight and its column.

The conversation is rendered and tokenised once, and the characters that each token holds say where it belongs. Code
elsewhere has forgotten the prompt before the response, shifted the labels but not the segments, tokenised segments
apart, and kept the weights of segments that were cut off; each has its test.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence

from rewards.learning.aligning.align_config import INVERTED
from rewards.learning.aligning.judged_rows import ScoredSpan
from rewards.learning.encoding import Located
from rewards.learning.refusals import Refused


class RewrittenResponse(Refused):
    """The chat template changes the response's text, so its segments cannot be found in what the policy reads."""


def owners(located: Located, response: str, segments: Sequence[ScoredSpan]) -> list[int]:
    """[response tokens]: the number of the segment that each token belongs to.

    A token across a boundary belongs to the segment of which it holds more characters, of equal ones to the first.
    What closes the turn belongs to the last segment.

    Raises:
        RewrittenResponse: the response is not in the rendered text.
    """
    removed = removed_from_start(located.rendered, response)
    starts, ends = [segment.start for segment in segments], [segment.end for segment in segments]
    numbers = []
    for start, end in located.spans:
        first, last = start + removed, end + removed
        candidates = range(min(bisect_right(ends, first), len(ends) - 1), len(ends))
        overlaps: dict[int, int] = {}
        for number in candidates:
            if starts[number] >= last and overlaps:
                break
            overlaps[number] = min(last, ends[number]) - max(first, starts[number])
        numbers.append(max(overlaps, key=lambda number: overlaps[number]))
    return numbers


def removed_from_start(rendered: str, response: str) -> int:
    """Returns how many characters of the response's beginning the template has left out, as many trim blanks."""
    if rendered.startswith(response):
        return 0
    if rendered.startswith(response.strip()):
        return len(response) - len(response.lstrip())
    raise RewrittenResponse(
        "the chat template changes the text of a response, so its segments cannot be found: use a policy whose "
        "template leaves a message's content as it is"
    )


def normalised(weights: Mapping[str, float], aspects: Sequence[str]) -> dict[str, float]:
    """Returns the weights of the aspects, scaled to the sum 1; all equal where none is given."""
    given = weights or dict.fromkeys(aspects, 1.0)
    total = sum(given.values())
    return {name: weight / total for name, weight in given.items()}


def rewards_of(segments: Sequence[ScoredSpan], weights: Mapping[str, float]) -> list[float]:
    """[segments]: r_k = W . r~_k, the weighted mean of the scores. 2D-DPO (arXiv 2410.19720)."""
    return [sum(weight * segment.scores[name] for name, weight in weights.items()) for segment in segments]


def columns(numbers: Sequence[int], rewards: Sequence[float], *, chosen: bool) -> dict[int, int]:
    """Returns the column of each segment that owns one of the tokens [tokens], by the segment's number.

    The best segment of a chosen response comes first, and the worst of a rejected one; of equal ones the earlier.
    """
    kept = sorted(set(numbers) - {-1}, key=lambda number: (-rewards[number] if chosen else rewards[number], number))
    return {number: column for column, number in enumerate(kept)}


def loss_weight(reward: float, *, chosen: bool, rejected_weight: str, levels: int) -> float:
    """Returns how much a segment of this reward counts in the loss.

    Read literally, 2D-DPO gives the worst rejected segment the weight 0, so that nothing pushes it down; `inverted`
    gives it the largest weight instead.
    """
    return levels - 1 - reward if not chosen and rejected_weight == INVERTED else reward
