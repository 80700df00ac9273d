"""Levels count from 1 wherever a person looks; what is stored, sent and exported counts from 0."""

import re

import pytest
from django.test import Client

from annotator.managing import rubrics
from annotator.managing.preset_rubrics import AttributeText, RubricText
from annotator.models import Project
from annotator.templatetags.scales import level
from rewards.models import RewardModel, Score
from tests.annotator.models.test_constraints import make_model
from tests.builders import make_task, rate
from tests.conftest import Cast

pytestmark = pytest.mark.django_db


def test_a_level_is_one_more_than_its_score() -> None:
    assert [level(position) for position in (0, 6, 2.5, None)] == [1, 7, 3.5, None]


@pytest.mark.parametrize(
    ("levels", "shown"), [(("No", "Yes"), ["No", "Yes"]), (("No", "Yes, and in full"), ["1", "2"])]
)
def test_a_few_short_words_stand_for_their_numbers(
    project: Project, cast: Cast, client: Client, levels: tuple[str, ...], shown: list[str]
) -> None:
    rubrics.publish(project, RubricText("criteria", "Criteria", (AttributeText("right", "Right", levels),)))
    make_task(project, responses=1)
    client.force_login(cast.alice)
    page = client.get("/projects/talk/annotate/").content.decode()
    assert re.findall(r'<span class="number">([^<]*)</span>', page) == shown
    assert ("worded" in page) == (shown == ["No", "Yes"])


def test_the_agreement_matrix_begins_at_one(project: Project, cast: Cast, staff: Client) -> None:
    make_task(project)
    for user in cast.annotators:
        rate(project, user, [0, 4])
    heat = staff.get("/projects/talk/agreement/").content.decode().split('<table class="heat">')[1].split("</table>")[0]
    assert re.findall(r'<th scope="row">(\d)</th>', heat) == list("12345")
    assert re.findall(r'<th scope="col">(\d)</th>', heat) == list("12345")


def test_the_keys_that_rate_are_those_of_the_longest_scale(project: Project, cast: Cast, client: Client) -> None:
    client.force_login(cast.alice)
    make_task(project)
    page = client.get("/projects/talk/annotate/").content.decode()
    assert ("<kbd>1</kbd> – <kbd>5</kbd>" in page, "<kbd>6</kbd> – <kbd>9</kbd>" in page) == (True, True)
    levels = tuple("abcdefg")
    rubrics.publish(project, RubricText("mine", "Mine", (AttributeText("tone", "Tone", levels),)))
    page = client.get("/projects/talk/annotate/").content.decode()
    assert ("<kbd>1</kbd> – <kbd>7</kbd>" in page, "– <kbd>9</kbd>" in page) == (True, False)


def test_scores_of_models_are_expected_levels(project: Project, cast: Cast, staff: Client) -> None:
    response = make_task(project).responses.earliest("pk")
    model = make_model(project, 1)
    RewardModel.objects.update(attributes=["helpfulness"])
    Score.objects.create(reward_model=model, response=response, scores={"helpfulness": 2.5}, reward=2.5)
    assert "helpfulness 3.50" in staff.get("/admin/rewards/score/").content.decode()


def test_the_review_shows_levels_and_rest_scores(project: Project, cast: Cast, staff: Client) -> None:
    task = make_task(project, responses=1)
    rate(project, cast.alice, 3)
    page = staff.get(f"/projects/talk/review/{task.public_id}/").content.decode()
    assert re.findall(r"<abbr title=[^>]*>(\d)</abbr>", page) == ["4"] * 5
    rows = staff.get("/api/v1/projects/talk/annotations/").json()["results"]
    assert rows[0]["ratings"][0]["scores"]["helpfulness"] == 3
