"""Makes of a snapshot's train part the rows that an alignment learns from, one after the other, without Django.

docs/aligning.md says what a row has. Prompts that are held out stay out: they judge the policy.
"""

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rewards.learning.aligning.align_config import BY_SEGMENT, SFT, STEERLM
from rewards.learning.config import reward_weights
from rewards.learning.data import USUAL_LEVELS, Response, Task, aspects_in, rated_attributes, read_tasks, scales_of
from rewards.learning.pairs import better
from rewards.learning.segments import Segment, mean_scores

Row = dict[str, Any]
TIES, UNSCORED, UNUSABLE = "ties", "unscored", "unusable"
"""Why a task gives no row: nobody prefers a response, scores are missing, or there is no text to learn."""


@dataclass(frozen=True)
class Wanted:
    """What rows are made for: the method, and the weights of attributes and aspects; no weights mean equal ones.

    `levels` is the number of levels of the longest scale, to which scores of segments are stretched.
    """

    method: str
    attributes: tuple[str, ...]
    weights: Mapping[str, float]
    aspects: Mapping[str, int]
    aspect_weights: Mapping[str, float]
    scales: Mapping[str, int]

    @property
    def levels(self) -> int:
        own = self.aspects if self.method in BY_SEGMENT else self.scales
        return max(own.values(), default=USUAL_LEVELS)

    @property
    def requested(self) -> dict[str, int]:
        """The highest level of each attribute, where the method reads levels."""
        return {name: self.scales[name] - 1 for name in self.attributes} if self.method == STEERLM else {}


@dataclass
class Counts:
    """How many rows there are, and how many tasks gave none, by the reason."""

    tasks: int = 0
    rows: int = 0
    left_out: Counter[str] = field(default_factory=Counter)


def wanted(
    manifest: Mapping[str, Any],
    train: Path,
    *,
    method: str,
    weights: Mapping[str, float],
    aspect_weights: Mapping[str, float],
) -> Wanted:
    """Returns what rows are to be made of a snapshot with this manifest, and with these train rows.

    weights: those of the attributes in the reward; those that lack one by which the rows are rated are not used.
    """
    levels = manifest.get("levels", {})
    attributes = rated_attributes(read_tasks(train), manifest.get("attributes") or ())
    aspects = scales_of(aspects_in(manifest), levels)
    fitting = {name: weights[name] for name in attributes if name in weights}
    return Wanted(
        method=method,
        attributes=attributes,
        weights=reward_weights(attributes, fitting if len(fitting) == len(attributes) else {}) if attributes else {},
        aspects=aspects,
        aspect_weights={name: aspect_weights.get(name, 0.0) if aspect_weights else 1.0 for name in aspects},
        scales=scales_of(attributes, levels),
    )


def rows_of(train: Path, want: Wanted, counts: Counts) -> Iterator[Row]:
    """Yields the rows of a snapshot's train file, task by task, and counts them."""
    for task in read_tasks(train, want.scales, want.aspects):
        counts.tasks += 1
        rows = list(_rows(task, want, counts))
        counts.rows += len(rows)
        yield from rows


def write_rows(place: Path, rows: Iterable[Row]) -> None:
    """Writes a JSONL file that appears whole or not at all."""
    place.parent.mkdir(parents=True, exist_ok=True)
    unfinished = place.with_name(f".{place.name}.unfinished")
    with unfinished.open("w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row) + "\n")
    unfinished.rename(place)


def _rows(task: Task, want: Wanted, counts: Counts) -> Iterator[Row]:
    if task.conversation[-1].role == "assistant" or not any(response.text.strip() for response in task.responses):
        counts.left_out[UNUSABLE] += 1
        return
    base = {"conversation": [{"role": turn.role, "content": turn.content} for turn in task.conversation]}
    pair = best_with_worst(task, want)
    if want.method == STEERLM:
        yield from _levelled(base, task, pair, want, counts)
        return
    if pair is None:
        counts.left_out[TIES] += 1
        return
    chosen, rejected = pair
    if not chosen.text.strip() or (want.method != SFT and not rejected.text.strip()):
        counts.left_out[UNUSABLE] += 1
        return
    row = base | {"chosen": chosen.text}
    if rejected.text.strip():
        row |= {"rejected": rejected.text}
    if want.method not in BY_SEGMENT:
        yield row
        return
    segments = [_segments(response, want) for response in pair]
    if not all(segments):
        counts.left_out[UNSCORED] += 1
        return
    yield row | dict(zip(("chosen_segments", "rejected_segments"), segments, strict=True))


def best_with_worst(task: Task, want: Wanted) -> tuple[Response, Response] | None:
    """Returns the two responses that are furthest apart: the better one first; None where nobody tells any apart.

    Rankings and preferences decide where there are any, then the weighted attributes, and in tasks that have neither
    the weighted means of their segments' aspects. Of several such pairs it is the first.
    """
    judged = [response for response in task.responses if response.scores or response.segments]
    pairs = list(better(task, want.weights)) if want.weights or task.is_compared else []
    if not pairs and not task.is_compared and task.preference is None and not any(r.scores for r in judged):
        pairs = list(_by_segments(task, want))
    if not pairs:
        return None
    wins: Counter[int] = Counter()
    for good, bad, _strength in pairs:
        wins[good] += 1
        wins[bad] -= 1
    good, bad, _strength = max(pairs, key=lambda pair: wins[pair[0]] - wins[pair[1]])
    chosen, rejected = task.responses[good], task.responses[bad]
    return None if chosen.text == rejected.text else (chosen, rejected)


def _by_segments(task: Task, want: Wanted) -> Iterator[tuple[int, int, float]]:
    """Yields every two responses that the weighted means of their aspects tell apart."""
    sums = []
    for response in task.responses:
        segments = [Segment(s.start, s.end, _stretched(s.scores, want)) for s in response.segments]
        sums.append(_weighted_mean(mean_scores(segments), want))
    for first in range(len(sums)):
        for second in range(first + 1, len(sums)):
            if abs(sums[first] - sums[second]) >= 1e-9:
                yield (first, second, 1.0) if sums[first] > sums[second] else (second, first, 1.0)


def _weighted_mean(scores: Mapping[str, float], want: Wanted) -> float:
    """Returns the mean of the known aspects by their weights; NaN where none of them counts."""
    total = sum(want.aspect_weights[name] for name in scores)
    if not total:
        return math.nan
    return sum(want.aspect_weights[name] * score for name, score in scores.items()) / total


def _stretched(scores: Mapping[str, float], want: Wanted) -> dict[str, float]:
    """Returns the scores as if every aspect had as many levels as the longest scale."""
    longest = max(want.aspects.values(), default=USUAL_LEVELS)
    return {name: score * (longest - 1) / (want.aspects[name] - 1) for name, score in scores.items()}


def _segments(response: Response, want: Wanted) -> list[Row]:
    """Returns the segments with a score for every aspect; none where a segment has no score that counts.

    An aspect without a score gets the weighted mean of the others in its segment, so that it changes nothing in the
    segment's reward: that is then the mean of those that were scored.
    """
    segments: list[Row] = []
    for segment in response.segments:
        scores = _stretched(segment.scores, want)
        mean = _weighted_mean(scores, want)
        if math.isnan(mean):
            return []
        whole = {name: round(scores.get(name, mean), 6) for name in want.aspects}
        segments.append({"start": segment.start, "end": segment.end, "scores": whole})
    return segments


def _levelled(
    base: Row, task: Task, pair: tuple[Response, Response] | None, want: Wanted, counts: Counts
) -> Iterator[Row]:
    """Yields each response under its own levels, the best and the worst one together."""
    levels: dict[str, dict[str, int]] = {}
    for response in task.responses:
        # The rounded mean stands in where there is no label; a response that lacks both for an attribute has no levels.
        known = {name: round(score) for name, score in response.scores.items()} | dict(response.labels)
        if response.text.strip() and want.attributes and set(want.attributes) <= set(known):
            levels[response.id] = {name: known[name] for name in want.attributes}
    if not levels:
        counts.left_out[UNSCORED] += 1
        return
    together: Sequence[Response] = pair if pair and all(response.id in levels for response in pair) else ()
    if together:
        chosen, rejected = together
        yield base | {
            "chosen": chosen.text,
            "attributes": levels[chosen.id],
            "rejected": rejected.text,
            "rejected_attributes": levels[rejected.id],
        }
    for response in task.responses:
        if response.id in levels and response not in together:
            yield base | {"chosen": response.text, "attributes": levels[response.id]}
