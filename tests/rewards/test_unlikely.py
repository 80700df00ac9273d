"""Annotations that a model finds unlikely come before a reviewer, blind, with what was expected."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from django.test import Client

from annotator.models import Assignment, Project, Task, UnlikelyAnnotation
from annotator.review import adjudicate, judge
from annotator.review.unlikely import ask_for_review
from rewards import unlikely
from rewards.models import RunState, TrainingRun
from rewards.unlikely import Given, most_unlikely
from tests.builders import ATTRIBUTES, NOW, make_project, make_task, rate
from tests.conftest import Cast

Noted = tuple[Task, UnlikelyAnnotation]


def scores(*, annotations: int, odd: int | None = None, lean: float = 0.0, seed: int = 0) -> list[Given]:
    """Five scores each around what is expected; one annotation gives the opposite, annotator 0 leans."""
    dice = np.random.default_rng(seed)
    rows = []
    for number in range(annotations):
        for attribute in ATTRIBUTES:
            expected = float(dice.uniform(0.5, 3.5))
            noise = float(dice.normal(0, 0.5)) + (lean if number % 3 == 0 else 0.0)
            given = 4 - expected if number == odd else expected + noise
            rows.append(Given(number, number, number % 3, number, attribute, given, expected))  # type: ignore[arg-type]
    return rows


def test_the_one_that_says_the_opposite_is_found() -> None:
    rows = scores(annotations=100, odd=41)
    found = most_unlikely(rows, percent=2)
    assert [each.annotation for each in found] == [41]
    assert found[0].evidence[0]["attribute"] in ATTRIBUTES
    assert found[0].deviations > 2


def test_never_more_than_their_share() -> None:
    rows = [*scores(annotations=100, odd=1)] + [Given(100 + n, 100 + n, 1, 1, "helpfulness", 0, 4.0) for n in range(10)]
    assert len(most_unlikely(rows, percent=2)) == 2


def test_who_leans_is_not_unlikely_for_that() -> None:
    assert most_unlikely(scores(annotations=90, lean=1.5), percent=20) == []


def test_nothing_expected_nothing_found() -> None:
    assert most_unlikely([], percent=2) == []


@pytest.fixture
def noted(cast: Cast) -> Noted:
    """Thirty tasks on which all agree, give or take, where bob gave one response 1; the model expects 3.5."""
    project = make_project("small", review_unlikely_percent=2)
    for number in range(30):
        make_task(project, prompt=f"Prompt {number}")
        for user in cast.annotators:
            odd = user == cast.bob and number == 7
            rate(project, user, [3, 1] if odd else 3 + (number % 2 == 0))
    run = TrainingRun.objects.create(project=project, reason="a test", state=RunState.PROMOTED)
    expect(run, project)
    assert unlikely.note(run, now=NOW) == 1
    note = UnlikelyAnnotation.objects.get()
    return Task.objects.get(pk=note.task_id), note


def expect(run: TrainingRun, project: Project) -> None:
    run.directory().mkdir(parents=True)
    responses = (response.pk for task in project.tasks.all() for response in task.responses.all())
    rows = ({"id": str(pk), "scores": dict.fromkeys(ATTRIBUTES, 3.5)} for pk in responses)
    (run.directory() / "expected.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_it_waits_for_a_reviewer(noted: Noted, cast: Cast) -> None:
    task, note = noted
    assert task.review_because == Task.Review.UNLIKELY
    assert note.annotation.assignment.annotator == cast.bob
    assert note.evidence[0] | {"attribute": ""} == {
        "response": task.responses.all()[1].pk,
        "attribute": "",
        "given": 1,
        "expected": 3.5,
    }


@pytest.mark.parametrize(
    "decide",
    [
        lambda task, note, by: judge(note.annotation.assignment_id, decision="accepted", by=by, now=NOW),
        lambda task, note, by: judge(note.annotation.assignment_id, decision="rejected", comment="No.", by=by, now=NOW),
        lambda task, note, by: adjudicate(
            task.pk,
            scores={each.pk: dict.fromkeys(ATTRIBUTES, 3) for each in task.responses.all()},
            reason="slip",
            by=by,
            now=NOW,
        ),
    ],
    ids=["accepted", "rejected", "settled"],
)
def test_a_decision_takes_it_out_of_the_queue(noted: Noted, cast: Cast, decide: Callable[..., Any]) -> None:
    task, note = noted
    decide(task, note, cast.carol)
    unlikely.ask_again()
    task.refresh_from_db()
    assert task.review_because != Task.Review.UNLIKELY


def test_what_was_accepted_is_not_asked_again(noted: Noted, cast: Cast) -> None:
    task, note = noted
    judge(note.annotation.assignment_id, decision="accepted", by=cast.carol, now=NOW)
    unlikely.note(TrainingRun.objects.get(), now=NOW)
    task.refresh_from_db()
    assert task.review_because == ""


def test_it_comes_back_when_the_task_is_settled_anew(noted: Noted) -> None:
    task, _ = noted
    Task.objects.filter(pk=task.pk).update(review_because="")
    assert unlikely.ask_again() == 1
    task.refresh_from_db()
    assert task.review_because == Task.Review.UNLIKELY


def test_a_project_may_turn_it_off(noted: Noted) -> None:
    task, _ = noted
    Project.objects.filter(pk=task.project_id).update(review_unlikely_percent=0)
    assert unlikely.note(TrainingRun.objects.get(), now=NOW) == 0
    assert not Task.objects.filter(review_because=Task.Review.UNLIKELY).exists()


def test_other_reasons_go_first(noted: Noted) -> None:
    task, _ = noted
    Task.objects.filter(pk=task.pk).update(review_because=Task.Review.SAFETY)
    assert ask_for_review(Task.objects.all()) == 0


def test_the_reviewer_sees_what_was_expected_but_not_who_it_was(noted: Noted, cast: Cast, client: Client) -> None:
    task, note = noted
    client.force_login(cast.carol)
    cast.carol.memberships.create(project=task.project, role="reviewer")
    page = client.get(f"/projects/small/review/{task.pk}/").content.decode()
    assert "response B: 2 for Helpfulness, where about 4.5 was expected." in " ".join(page.split())
    assert "bob" not in page
    told = client.get(f"/api/v1/review/{task.pk}/").json()
    given = [each["unlikely"] for each in told["raters"] if each["assignment"] == note.annotation.assignment_id]
    assert given == [note.evidence]
    assert Assignment.objects.filter(task=task).count() == len(told["raters"])
