"""What an annotator says of a task, as data."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import itemgetter

from annotator.consensus.rankings import Ranking, tiers


@dataclass(frozen=True)
class ResponseRating:
    """Scores by attribute key, each 0..4, and what else was answered about one response."""

    scores: Mapping[str, int]
    checks: tuple[str, ...] = ()
    confidence: int | None = None
    safe: bool | None = None
    unsafe_category: str = ""


@dataclass(frozen=True)
class Submission:
    """A filled form: ratings by response id. A preference is relative to the order the annotator saw.

    `ranking` holds tiers of response ids, the best first, where there are three responses or more.
    """

    ratings: Mapping[int, ResponseRating]
    preference: int | None = None
    ranking: Ranking | None = None
    justification: str = ""
    active_seconds: float | None = field(default=None, compare=False)

    def content_hash(self) -> str:
        # What asdict makes of it, which would copy every value first: this runs at every submission.
        ratings = [(response, vars(rating)) for response, rating in sorted(self.ratings.items(), key=itemgetter(0))]
        content = vars(self) | {"ratings": ratings, "active_seconds": None}
        if self.ranking is None:
            del content["ranking"]  # a rating of before there were rankings keeps its hash
        else:
            content["ranking"] = tiers(self.ranking)
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
