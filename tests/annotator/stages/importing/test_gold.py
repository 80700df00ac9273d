"""Gold tasks by import: the experts' ratings come with the row, and stay what they were."""

from typing import Any

import pytest

from annotator.models import ExpertRating, Gold, Project, Task
from tests.builders import ATTRIBUTES, gold_row, imported, make_gold, task_row


def test_a_gold_task_brings_the_experts_ratings(project: Project) -> None:
    task = make_gold(project, use="test", levels=(4, 0))
    assert (task.state, task.gold.use) == (Task.State.GOLD, Gold.Use.TEST)
    stored = ExpertRating.objects.order_by("response__position").values_list("scores", "explanation")
    assert list(stored) == [(dict.fromkeys(ATTRIBUTES, level), f"Level {level} it is.") for level in (4, 0)]


def test_the_same_gold_twice_changes_nothing(project: Project) -> None:
    row = gold_row("g-1")
    imported(project, row)
    again = imported(project, row)
    assert (again.created, again.existing, again.rejected) == (0, 1, [])
    assert ExpertRating.objects.count() == 2


def test_other_expert_ratings_of_a_known_gold_task_are_refused(project: Project) -> None:
    imported(project, gold_row("g-1", levels=(3, 1)))
    again = imported(project, gold_row("g-1", levels=(3, 2)))
    assert "another gold" in again.rejected[0].error
    assert set(ExpertRating.objects.values_list("scores__helpfulness", flat=True)) == {3, 1}


def test_an_ordinary_task_does_not_become_gold(project: Project) -> None:
    imported(project, task_row("t-1"))
    row = gold_row("t-1", prompt="What is t-1?")
    again = imported(project, row)
    assert "another gold" in again.rejected[0].error
    assert Task.objects.get().state == Task.State.OPEN


def without_expert(row: dict[str, Any]) -> dict[str, Any]:
    del row["responses"][1]["expert"]
    return row


def with_scores(**scores: Any) -> dict[str, Any]:
    row = gold_row()
    row["responses"][0]["expert"]["scores"] |= scores
    return row


@pytest.mark.parametrize(
    ("row", "error"),
    [
        (gold_row(use="exam"), "gold is 'exam': it must be one of practice, test, stream"),
        (without_expert(gold_row()), "gold needs an expert rating of every response"),
        ({**gold_row(), "gold": None}, "a response has an expert rating: set gold to say what it is for"),
        (with_scores(helpfulness=5), "responses[0].expert.scores.helpfulness is 5"),
        (with_scores(charm=1), "unknown attribute of responses[0].expert.scores 'charm'"),
        ({**gold_row(), "responses": [{"text": "x", "expert": {"scores": {}}}]}, "lacks helpfulness, correctness"),
        ({**gold_row(), "responses": [{"text": "x", "expert": 3}]}, "responses[0].expert is 3"),
    ],
)
def test_bad_gold_is_refused_by_name(project: Project, row: dict[str, Any], error: str) -> None:
    (rejected,) = imported(project, row).rejected
    assert error in rejected.error
    assert not Task.objects.exists()
