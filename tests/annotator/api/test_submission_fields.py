"""Bodies of submissions are checked without the fields that they leave out, and judged as with them."""

from collections.abc import Callable
from typing import Any

import pytest
from rest_framework.exceptions import ValidationError

from annotator.api.submissions import SubmissionSerializer, submission_of
from annotator.models.public_ids import response_number

FIRST, SECOND = response_number(1), response_number(2)
RATED = {"response": FIRST, "scores": {"helpfulness": 2}}


@pytest.mark.parametrize(
    "body",
    [
        {"ratings": [RATED]},
        {"ratings": [RATED, {"response": SECOND, "scores": {}, "safe": True, "feedback": "clear"}], "preference": -1},
        {"ratings": [RATED], "justification": None},
        {"ratings": [RATED | {"confidence": 7}, {"response": SECOND, "edit": 1}], "active_seconds": "12"},
        {"ratings": [RATED | {"helpfulness": 2}], "preferrence": 1},
        {"ratings": [RATED, RATED]},
        {"ratings": [RATED, 3]},
        {"ratings": {"response": FIRST}},
        {"ratings": None},
        {"ratings": []},
        {"preference": 1},
        {},
        [],
        None,
        "ratings",
    ],
)
def test_what_is_left_out_changes_no_judgement(body: Any) -> None:
    assert refusal(submission_of, body) == refusal(SubmissionSerializer().run_validation, body)


def refusal(check: Callable[[Any], Any], body: Any) -> Any:
    """Returns what the check says is wrong with a body, None if nothing is."""
    try:
        check(body)
    except ValidationError as refused:
        return refused.detail
    return None


def test_fields_that_are_left_out_have_their_defaults() -> None:
    submission = submission_of({"ratings": [RATED, {"response": SECOND, "checks": ["lists"]}], "language": "DE"})
    first, second = submission.ratings[1], submission.ratings[2]
    assert (first.scores, first.checks, second.scores, second.checks) == ({"helpfulness": 2}, (), {}, ("lists",))
    assert (first.confidence, first.safe, first.unsafe_category, first.edit) == (None, None, "", "")
    assert (submission.preference, submission.justification, submission.language) == (None, "", "de")
