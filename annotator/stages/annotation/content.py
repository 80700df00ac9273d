"""What an annotator submits about a task, as data that knows nothing of the database."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter

from annotator.stages.consensus.rankings import Ranking, tiers


@dataclass(frozen=True)
class ResponseRating:
    """The answers about one response: scores (0 to levels - 1) by attribute key, check-boxes, confidence and safety.

    `feedback` says what is good and bad about it, `edit` is a better version, and `edit_summary` what that changes.

    `segments` holds the scores of each segment by aspect, None where an aspect does not apply. They follow the
    response's segments, or `cut`, pairs (start, end), where the annotator has cut it in another way. `comments` are
    triples (start, end, text) about characters of the response. `evidence` holds (attribute, start, end, note): the
    characters for which an attribute has its score.
    """

    scores: Mapping[str, int]
    checks: tuple[str, ...] = ()
    confidence: int | None = None
    safe: bool | None = None
    unsafe_category: str = ""
    feedback: str = ""
    edit: str = ""
    edit_summary: str = ""
    segments: tuple[Mapping[str, int | None], ...] = ()
    cut: tuple[tuple[int, int], ...] = ()
    comments: tuple[tuple[int, int, str], ...] = ()
    evidence: tuple[tuple[str, int, int, str], ...] = ()

    def segment_scores(self, aspects: Sequence[str]) -> list[list[int | None]] | None:
        """Returns the scores of the segments as they are stored: [segments][aspects], or None if there are none."""
        return [[scores[aspect] for aspect in aspects] for scores in self.segments] if self.segments else None


_WRITTEN = ("feedback", "edit", "edit_summary", "segments", "cut", "comments", "evidence")
_OF_THE_TASK = ("domain", "language")


@dataclass(frozen=True)
class Submission:
    """A completed form: ratings by response id. The preference is relative to the order that the annotator saw.

    `ranking` holds tiers of response ids, the best first; only three or more responses are ranked. `domain` and
    `language`, a code, are the task's.
    """

    ratings: Mapping[int, ResponseRating]
    preference: int | None = None
    ranking: Ranking | None = None
    justification: str = ""
    domain: str = ""
    language: str = ""
    active_seconds: float | None = field(default=None, compare=False)

    def texts(self) -> Iterator[str]:
        """Returns what the annotator wrote."""
        yield self.justification
        for rating in self.ratings.values():
            yield from (rating.feedback, rating.edit, rating.edit_summary)
            yield from (text for _start, _end, text in rating.comments)
            yield from (note for *_place, note in rating.evidence)

    def content_hash(self) -> str:
        """Returns the hash by which a submission that is sent again is recognised.

        The active seconds are left out: they differ between two sendings of one form.
        """
        # vars() instead of asdict(), which copies every value: this runs at every submission. The result is the same.
        ratings = [
            (response, _without_empty(vars(rating), _WRITTEN))
            for response, rating in sorted(self.ratings.items(), key=itemgetter(0))
        ]
        content = _without_empty(vars(self), _OF_THE_TASK) | {"ratings": ratings, "active_seconds": None}
        if self.ranking is None:
            del content["ranking"]  # hashes stored before rankings existed stay valid
        else:
            content["ranking"] = tiers(self.ranking)
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _without_empty(content: Mapping[str, object], names: Sequence[str]) -> dict[str, object]:
    """Leaves out answers that came to the product later and are not given: hashes of before they existed stay valid."""
    return {name: value for name, value in content.items() if value or name not in names}
