"""A submission's hash stays what it was, or every rating would look like a revision."""

import hashlib
import json
from dataclasses import asdict

from annotator.stages.annotation import ResponseRating, Submission


def test_the_hash_is_that_of_all_fields_but_the_time() -> None:
    ratings = {
        12: ResponseRating({"b": 1, "a": 4}, checks=("x", "y"), confidence=2, safe=False, unsafe_category="other"),
        3: ResponseRating({"a": 0}),
    }
    made = Submission(ratings, preference=-2, justification="Because of “this”.", active_seconds=4.5)
    content = asdict(made) | {"active_seconds": None}
    # Not given, as in all ratings of before these could be.
    for name in ("ranking", "domain", "language"):
        del content[name]
    for rating in content["ratings"].values():
        for name in ("feedback", "edit", "edit_summary", "segments", "cut", "comments", "evidence"):
            del rating[name]
    content["ratings"] = sorted(content["ratings"].items())
    assert made.content_hash() == hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def test_the_order_within_a_tier_is_no_other_ranking() -> None:
    given = [[1], [3, 2]], [[1], [2, 3]], [[1, 2], [3]]
    one, same, other = (Submission({}, ranking=ranking).content_hash() for ranking in given)
    assert one == same != other
