"""Settled tasks that reviewers have marked stand in the guidelines, beside the levels that they gave."""

import re
from datetime import timedelta

import pytest
from django.test import Client

from annotator.models import Adjudication, Project, Rubric, Task
from annotator.reading.settled_examples import MOST, settled_examples
from annotator.stages.review import adjudicate, withdraw
from tests.builders import ATTRIBUTES, NOW, claimed, make_member, make_task, make_user, rate
from tests.conftest import As, Cast

pytestmark = pytest.mark.django_db
GUIDELINES = "/projects/talk/guidelines/"


def settled(project: Project, cast: Cast, number: int, *, is_example: bool = True) -> Task:
    """A complete task whose first response has level 4 and whose second has level 2, on every attribute."""
    task = make_task(project, f"t-{number}", prompt=f"Question {number}?")
    for user in cast.annotators:
        rate(project, user)
    scores = {one.pk: dict.fromkeys(ATTRIBUTES, 3 - 2 * one.position) for one in task.responses.all()}
    comment = f"Because of {number}."
    adjudicate(task.pk, scores=scores, reason="slip", comment=comment, is_example=is_example, by=cast.carol, now=NOW)
    return task


def prompts(project: Project, cast: Cast, score: int = 3) -> list[str]:
    return [one.prompt for one in settled_examples(project, reader=cast.alice)["helpfulness"].get(score, [])]


def test_the_newest_of_each_level_are_shown_and_unmarked_ones_are_not(project: Project, cast: Cast) -> None:
    for number in range(MOST + 1):
        settled(project, cast, number)
    settled(project, cast, 9, is_example=False)
    assert prompts(project, cast) == prompts(project, cast, 1) == ["Question 2?", "Question 1?"]
    assert prompts(project, cast, 0) == []
    (first, _) = settled_examples(project, reader=cast.alice)["correctness"][1]
    assert (first.text, first.comment) == ("Answer 1 to t-2.", "Because of 2.")


def test_a_decision_that_is_withdrawn_or_changed_takes_its_example_along(project: Project, cast: Cast) -> None:
    task = settled(project, cast, 1)
    scores = {one.pk: dict.fromkeys(ATTRIBUTES, 0) for one in task.responses.all()}
    adjudicate(task.pk, scores=scores, reason="slip", is_example=True, by=cast.carol, now=NOW)
    assert (prompts(project, cast), prompts(project, cast, 0)) == ([], ["Question 1?"] * 2)
    withdraw(task.pk, by=cast.carol, now=NOW)
    assert prompts(project, cast, 0) == []
    assert Adjudication.objects.filter(is_example=True).count() == 2


def test_a_new_version_of_the_rubric_begins_without_examples(project: Project, cast: Cast) -> None:
    settled(project, cast, 1)
    first = project.rubric
    for made_at, shown in ((NOW, ["Question 1?"]), (NOW + timedelta(seconds=1), [])):
        project.rubric = Rubric(previous=first, version=2, made_at=made_at)
        assert prompts(project, cast) == shown


def test_nobody_is_shown_what_they_have_still_to_rate(project: Project, cast: Cast) -> None:
    task, late = settled(project, cast, 1), make_user("late")
    make_member(project, late)
    assert settled_examples(project, reader=late)
    Task.objects.update(state=Task.State.OPEN, slots_wanted=4, open_slots=1)
    assert not settled_examples(project, reader=late)
    assert claimed(project, late).task == task
    Task.objects.update(state=Task.State.COMPLETE)
    assert not settled_examples(project, reader=late)
    assert settled_examples(project, reader=cast.bob)


def test_the_guidelines_have_them_beside_their_levels(project: Project, cast: Cast, client: Client) -> None:
    settled(project, cast, 1)
    client.force_login(cast.alice)
    page = client.get(GUIDELINES).content.decode()
    levels = re.findall(r"<li>(.*?)</li>", page[page.index("<h3>Helpfulness") :], re.DOTALL)[:5]
    assert ["Answer 0 to t-1" in level for level in levels] == [False, False, False, True, False]
    assert ["Answer 1 to t-1" in level for level in levels] == [False, True, False, False, False]
    assert "Because of 1." in levels[1]


def test_one_is_marked_on_the_page_and_over_rest(project: Project, cast: Cast, client: Client, as_user: As) -> None:
    task = settled(project, cast, 1, is_example=False)
    page = f"/projects/talk/review/{task.public_id}/"
    client.force_login(cast.carol)
    form = {f"{key}-{one.public_id}": 3 for key in ATTRIBUTES for one in task.responses.all()}
    settled_now = Adjudication.objects.get(is_current=True).pk
    client.post(page, {**form, "reason": "slip", "comment": "", "example": "on", "settled": settled_now})
    assert Adjudication.objects.get(is_current=True).is_example
    assert 'name="example" id="id_example" checked' in client.get(f"{page}?start=settled").content.decode()
    ratings = [{"response": one.public_id, "scores": dict.fromkeys(ATTRIBUTES, 2)} for one in task.responses.all()]
    rest, address = as_user(cast.carol), f"/api/v1/tasks/{task.public_id}/adjudication/"
    for example in (True, False):
        body = {"ratings": ratings, "reason": "slip", **({"example": True} if example else {})}
        assert rest.put(address, body, format="json").json()["example"] is example
        assert Adjudication.objects.get(is_current=True).is_example is example
