"""What somebody said of gold tasks beside what the experts say, response by response and segment by segment."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

Scores = Mapping[str, int]
EXPERTS = tuple(f"response__expert_rating__{name}" for name in ("scores", "aspects", "segment_scores"))


def beside_experts(rows: Iterable[Sequence[Any]]) -> Iterator[tuple[Scores, Scores]]:
    """Yields somebody's scores with the experts', of responses and of segments.

    A row is (scores, aspects, segment scores, own cut) of the answer, then scores, aspects and segment scores of the
    experts. Segments of an own cut are not the experts', and are left out; so is an aspect that does not apply.
    """
    for scores, aspects, segments, cut, experts, experts_aspects, experts_segments in rows:
        yield scores, experts
        if not segments or not experts_segments or cut:
            continue
        for mine, theirs in zip(segments, experts_segments, strict=False):
            yield _given(aspects, mine), _given(experts_aspects, theirs)


def _given(aspects: Sequence[str], row: Sequence[int | None]) -> dict[str, int]:
    return {aspect: score for aspect, score in zip(aspects, row, strict=True) if score is not None}
