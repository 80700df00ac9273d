"""A rule about a project holds at every door: REST, and the stage that commands call."""

from typing import Any

import pytest
from rest_framework.test import APIClient

from annotator.analysis.quality.assessment import assess
from annotator.models import Annotation, Membership, Project, Rubric, User
from annotator.stages import annotation
from annotator.stages.annotation import IncompleteRating, ResponseRating, Submission
from tests.builders import NOW, claimed, make_task, make_user, rate
from tests.conftest import As, Cast

BROKEN = [
    ("spread_attribute", "tone"),
    ("keep", 9),
    ("keep", 26),
    ("escalate_above", 7),
    ("drop_above", 5),
    ("max_annotators", 2),
    ("max_annotators", 26),
    ("validation_share", 0.9),
    ("gold_threshold", 2),
    ("lease_minutes", 0),
    ("review_unlikely_percent", 50),
]


# Settings --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("field", "value"), BROKEN)
def test_rest_refuses_settings_that_no_project_can_have(
    project: Project, carol: APIClient, field: str, value: Any
) -> None:
    answer = carol.patch("/api/v1/projects/talk/", {field: value})
    assert (answer.status_code, list(answer.json()["errors"])) == (400, [field])
    assert carol.post("/api/v1/projects/", {"slug": "new", "name": "New", field: value}).status_code == 400


def test_fewer_annotators_keep_fewer(project: Project, carol: APIClient) -> None:
    answer = carol.patch("/api/v1/projects/talk/", {"base_annotators": 1, "max_annotators": 1})
    assert (answer.status_code, answer.json()["keep"]) == (200, 1)


# The rubric ------------------------------------------------------------------------------------------------


def test_a_rubric_that_asks_for_nothing_is_refused(project: Project, carol: APIClient) -> None:
    Rubric.objects.create(key="empty", name="Empty")
    made = carol.post("/api/v1/projects/", {"slug": "new", "name": "New", "rubric": "empty"})
    assert (made.status_code, list(made.json()["errors"])) == (400, ["rubric"])
    assert "has no attribute to rate by" in made.json()["detail"]


def test_the_rubric_stays_once_something_is_rated(project: Project, cast: Cast, carol: APIClient) -> None:
    other = Rubric.objects.create(key="other", name="Other")
    other.attributes.create(key="helpfulness", name="Helpfulness", description="", levels=["a"] * 5)
    make_task(project)
    assert carol.patch("/api/v1/projects/talk/", {"rubric": "other"}).status_code == 200
    assert carol.patch("/api/v1/projects/talk/", {"rubric": "helpsteer2"}).status_code == 200
    rate(project, cast.alice)
    answer = carol.patch("/api/v1/projects/talk/", {"rubric": "other"})
    assert (answer.status_code, list(answer.json()["errors"])) == (400, ["rubric"])


def test_an_annotation_with_nothing_in_it_is_refused(project: Project, cast: Cast, as_user: As) -> None:
    """As when a project of an older version asks for attributes that no page shows."""
    make_task(project)
    held = claimed(project, cast.alice)
    Project.objects.update(rubric=Rubric.objects.get(key="helpsteer2d"))
    project.refresh_from_db()
    ratings = [{"response": response.public_id, "scores": {}} for response in held.task.responses.all()]
    answer = as_user(cast.alice).put(f"/api/v1/assignments/{held.pk}/annotation/", {"ratings": ratings})
    assert (answer.status_code, answer.json()["code"]) == (400, "incomplete")
    empty = Submission({response.pk: ResponseRating({}) for response in held.task.responses.all()})
    with pytest.raises(IncompleteRating, match="the rating is empty"):
        annotation.submit(held.pk, empty, now=NOW)
    assert not Annotation.objects.exists()


def test_a_project_without_scores_stops_no_assessment(project: Project, cast: Cast) -> None:
    make_task(project)
    rate(project, cast.alice)
    Project.objects.update(rubric=Rubric.objects.get(key="helpsteer2d"))
    assert assess(Project.objects.get(), now=NOW) == 1


# Languages -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("given", "hint"), [("English", "Write en."), ("pt_BR", "Write pt-br."), ("xx", "such as en")])
def test_a_language_that_no_task_can_have_is_refused(
    project: Project, cast: Cast, carol: APIClient, given: str, hint: str
) -> None:
    answer = carol.post("/api/v1/projects/talk/members/", {"username": "alice", "languages": [given]})
    assert (answer.status_code, list(answer.json()["errors"])) == (400, ["languages"])
    assert hint in answer.json()["detail"]
    member = cast.alice.memberships.get()
    assert Membership.objects.get(pk=member.pk).languages == []


def test_languages_are_stored_as_tasks_have_them(project: Project, cast: Cast, carol: APIClient) -> None:
    make_task(project, lang="qqq")
    sent = {"username": "alice", "languages": ["DE", "de", "qqq"]}
    assert carol.post("/api/v1/projects/talk/members/", sent).json()["languages"] == ["de", "qqq"]


# What each role reads ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["projects/talk/", "projects/"])
def test_settings_are_read_by_role(project: Project, cast: Cast, as_user: As, path: str) -> None:
    rita = make_user("rita")
    Membership.objects.create(project=project, user=rita, role="reviewer")

    def read(user: User) -> set[str]:
        body = as_user(user).get(f"/api/v1/{path}").json()
        return set(body["results"][0] if "results" in body else body)

    annotator, reviewer, manager = read(cast.alice), read(rita), read(cast.carol)
    assert {"slug", "name", "description", "rubric", "guidelines_version", "ask_safety", "own"} <= annotator
    assert not annotator & {"gold_every", "gold_threshold", "training_config", "keep", "progress", "validation_share"}
    assert {"keep", "progress"} <= reviewer
    assert not reviewer & {"gold_every", "gold_threshold", "training_config"}
    assert {"gold_every", "training_config"} <= manager


def test_the_own_part_tells_what_one_has_done(project: Project, cast: Cast, as_user: As) -> None:
    make_task(project)
    rate(project, cast.alice)
    Membership.objects.filter(user=cast.alice).update(quota=7)
    shown = as_user(cast.alice).get("/api/v1/projects/talk/").json()
    assert shown["own"] == {"role": "annotator", "done": 1, "quota": 7}
