"""What a reviewer is told of the raters' answers to one question."""

from types import SimpleNamespace
from typing import Any

import pytest

from annotator.models import NEITHER_VALID
from annotator.stages.review.rating_sheets import said_by

LEVELS = {score: str(score + 1) for score in range(5)}


def given(*scores: int | None, out: tuple[int, ...] = ()) -> list[tuple[Any, int | None]]:
    """Answers of raters from number 1 up; those of the numbers `out` do not count."""
    return [(SimpleNamespace(number=number, counts=number not in out), score) for number, score in enumerate(scores, 1)]


def test_each_answer_is_listed_with_who_gave_it() -> None:
    said = said_by(given(4, 0, 4), LEVELS, differ=True)
    assert said.brief.split() == ["5", "1", "5"]
    assert said.by_answer == {4: "1 3", 0: "2"}


@pytest.mark.parametrize(("scores", "brief"), [((1, 3, 2, 2, 2, 2, 2), "2–4"), ((2,) * 9, "3")])
def test_of_many_answers_the_lowest_and_the_highest_are_said(scores: tuple[int, ...], brief: str) -> None:
    assert said_by(given(*scores), LEVELS, differ=False).brief == brief


def test_neither_is_no_end_of_the_scale() -> None:
    texts = {-3: "A3", 1: "B1", NEITHER_VALID: "×"}
    assert said_by(given(NEITHER_VALID, -3, -3, -3, -3, 1, 1), texts, differ=True).brief == "A3–B1 ×"


def test_who_does_not_count_or_has_not_answered_is_left_out() -> None:
    said = said_by(given(4, None, 0, out=(3,)), LEVELS, differ=False)
    assert (said.brief, said.by_answer) == ("5", {4: "1"})


def test_nobody_said_anything() -> None:
    assert said_by([], LEVELS, differ=False).brief == ""
