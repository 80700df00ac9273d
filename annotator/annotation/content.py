"""What an annotator submits about a task, as data that knows nothing of the database."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import itemgetter

from annotator.consensus.rankings import Ranking, tiers


@dataclass(frozen=True)
class ResponseRating:
    """The answers about one response: scores (0 to levels - 1) by attribute key, check-boxes, confidence and safety."""

    scores: Mapping[str, int]
    checks: tuple[str, ...] = ()
    confidence: int | None = None
    safe: bool | None = None
    unsafe_category: str = ""


@dataclass(frozen=True)
class Submission:
    """A completed form: ratings by response id. The preference is relative to the order that the annotator saw.

    `ranking` holds tiers of response ids, the best first; only three or more responses are ranked.
    """

    ratings: Mapping[int, ResponseRating]
    preference: int | None = None
    ranking: Ranking | None = None
    justification: str = ""
    active_seconds: float | None = field(default=None, compare=False)

    def content_hash(self) -> str:
        """Returns the hash by which a submission that is sent again is recognised.

        The active seconds are left out: they differ between two sendings of one form.
        """
        # vars() instead of asdict(), which copies every value: this runs at every submission. The result is the same.
        ratings = [(response, vars(rating)) for response, rating in sorted(self.ratings.items(), key=itemgetter(0))]
        content = vars(self) | {"ratings": ratings, "active_seconds": None}
        if self.ranking is None:
            del content["ranking"]  # hashes stored before rankings existed stay valid
        else:
            content["ranking"] = tiers(self.ranking)
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
