"""Rubrics by REST."""

from typing import Any

import pytest
from rest_framework.test import APIClient

from annotator.models import Project, Rubric, Token, User
from tests.conftest import Cast

pytestmark = pytest.mark.django_db

MINE: dict[str, Any] = {
    "key": "mine",
    "name": "Mine",
    "attributes": [
        {"key": "tone", "name": "Tone", "levels": ["rude", "plain", "kind"]},
        {"key": "trust", "name": "Trust", "levels": list("abcdefg"), "description": "How far?", "weight": 2},
        {"key": "sound", "name": "Sound", "levels": ["No", "Yes"], "checks": [["slips", "Has slips"]]},
    ],
}


@pytest.fixture
def carol(cast: Cast, project: Project) -> APIClient:
    return _client(cast.carol)


def _client(user: User) -> APIClient:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Token {Token.objects.create(user)[1]}")
    return client


def without_version(rubric: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in rubric.items() if name != "version"}


def test_the_presets_are_offered(carol: APIClient) -> None:
    keys = [row["key"] for row in carol.get("/api/v1/rubrics/").json()["results"]]
    assert {"helpsteer2", "overall_quality", "helpful_harmless", "yes_no"} <= set(keys)


def test_a_rubric_is_offered_and_chosen_by_its_key(carol: APIClient) -> None:
    assert carol.post("/api/v1/rubrics/", MINE).status_code == 201
    made = carol.post("/api/v1/projects/", {"slug": "new", "name": "New", "rubric": "mine"})
    assert (made.status_code, made.json()["rubric"], made.json()["spread_attribute"]) == (201, "mine", "tone")


def test_a_project_is_made_with_the_text_of_a_rubric(carol: APIClient) -> None:
    made = carol.post("/api/v1/projects/", {"slug": "new", "name": "New", "rubric": MINE})
    assert made.status_code == 201, made.json()
    shown = carol.get("/api/v1/projects/new/rubric/").json()
    assert [len(one["levels"]) for one in shown["attributes"]] == [3, 7, 2]
    assert (shown["key"], shown["version"]) == ("mine", 1)
    assert not Rubric.objects.offered().filter(key="mine").exists()


def test_put_makes_the_next_version_and_says_before_what_it_does(carol: APIClient) -> None:
    first = carol.get("/api/v1/projects/talk/rubric/").json()
    assert carol.put("/api/v1/projects/talk/rubric/", first).json()["version"] == 1
    told = carol.put("/api/v1/projects/talk/rubric/?dry_run=1", MINE).json()
    assert (told["version"], told["added"], told["spread_attribute"]) == (2, ["tone", "trust", "sound"], "tone")
    answer = carol.put("/api/v1/projects/talk/rubric/", MINE)
    assert (answer.status_code, answer.json()["version"]) == (200, 2)
    assert without_version(carol.get("/api/v1/projects/talk/rubric/?version=1").json()) == without_version(first)
    assert carol.get("/api/v1/projects/talk/rubric/?version=9").status_code == 400


def test_what_cannot_be_rated_by_is_refused_by_place(carol: APIClient) -> None:
    broken = MINE | {"attributes": [MINE["attributes"][0] | {"levels": ["one"]}]}
    answer = carol.put("/api/v1/projects/talk/rubric/", broken)
    assert (answer.status_code, list(answer.json()["errors"])) == (400, ["attributes.0.levels"])
    wrong: list[Any] = [[], {"key": 1}, MINE | {"colour": "red"}, MINE | {"attributes": "none"}]
    for body in wrong:
        assert carol.put("/api/v1/projects/talk/rubric/", body).status_code == 400


def test_a_project_cannot_take_what_is_not_offered_to_it(carol: APIClient, cast: Cast) -> None:
    Rubric.objects.create(key="theirs", name="Theirs", made_by=cast.dave).attributes.create(
        key="a", name="A", levels=["x", "y"]
    )
    for rubric in ("theirs", "none", 7, None):
        answer = carol.post("/api/v1/projects/", {"slug": "new", "name": "New", "rubric": rubric})
        assert (answer.status_code, list(answer.json()["errors"])) == (400, ["rubric"])
    assert carol.patch("/api/v1/projects/talk/", {"rubric": MINE}).status_code == 400


def test_annotators_get_the_project_s_rubric_with_their_task(cast: Cast, carol: APIClient, project: Project) -> None:
    carol.put("/api/v1/projects/talk/rubric/", MINE)
    carol.post(
        "/api/v1/projects/talk/import/",
        [{"id": "1", "messages": [{"role": "user", "content": "Hi"}], "responses": [{"text": "Hello"}]}],
    )
    rubric = _client(cast.alice).post("/api/v1/projects/talk/next/").json()["rubric"]
    assert (rubric["version"], [one["key"] for one in rubric["attributes"]]) == (2, ["tone", "trust", "sound"])
