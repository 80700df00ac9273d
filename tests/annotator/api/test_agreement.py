"""Agreement over REST."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from annotator.models import Project, Role
from tests.builders import ATTRIBUTES, make_member, make_task, make_user, pseudonym, rate
from tests.conftest import As, Cast

KEYS = {"kappa", "interval", "samples", "ratings", "undefined_reason"}


@pytest.fixture
def rated(project: Project, cast: Cast) -> None:
    for number in range(6):
        make_task(project)
        for user, level in zip(cast.annotators, (number % 5, (number + 1) % 5, 2), strict=True):
            rate(project, user, [level, 4 - level], preference=1 if number else -100)


def asked(client: APIClient) -> Any:
    return client.get("/api/v1/projects/talk/agreement/").json()


def test_it_is_told_by_selection_and_attribute(as_user: As, cast: Cast, rated: None) -> None:
    answer = asked(as_user(cast.carol))
    assert list(answer)[:3] == ["first_three", "all", "kept"]
    assert list(answer["all"]) == list(ATTRIBUTES)
    assert set(answer["all"]["helpfulness"]) == KEYS
    low, high = answer["all"]["helpfulness"]["interval"]
    assert answer["all"]["helpfulness"]["samples"] == 12
    assert low <= answer["all"]["helpfulness"]["kappa"] <= high


def test_everything_else_is_told_too(as_user: As, cast: Cast, rated: None) -> None:
    answer = asked(as_user(cast.carol))
    assert sum(map(sum, answer["confusion"]["helpfulness"])) == 12 * 6
    assert set(answer["alpha"]["helpfulness"]) == {"ordinal", "interval"}
    assert (answer["weeks"][0]["week"], answer["weeks"][0]["samples"]) == ("2026-01-26", 12)
    assert (answer["preference"]["samples"], answer["preference"]["neither"]) == (5, pytest.approx(1 / 6))
    assert (answer["safety"]["samples"], answer["pending"]) == (0, 0)


def test_managers_read_names_and_reviewers_pseudonyms(as_user: As, cast: Cast, project: Project, rated: None) -> None:
    reviewer = make_user("rita")
    make_member(project, reviewer, role=Role.REVIEWER)
    answered = asked(as_user(cast.carol))
    assert {annotator["annotator"] for annotator in answered["annotators"]} == {"alice", "bob", "erin"}
    assert len(answered["pairs"]) == 3
    blind = asked(as_user(reviewer))
    assert {annotator["annotator"] for annotator in blind["annotators"]} == {
        pseudonym(annotator, project) for annotator in cast.annotators
    }
    assert not {"alice", "bob", "erin"} & {name for pair in blind["pairs"] for name in pair["annotators"]}


def test_nothing_rated_is_told_all_the_same(as_user: As, cast: Cast) -> None:
    answer = asked(as_user(cast.carol))
    assert answer["all"]["helpfulness"]["undefined_reason"] == "no response has two ratings yet"
    assert (answer["annotators"], answer["pairs"], answer["weeks"], answer["safety"]["kappa"]) == ([], [], [], None)


def test_more_ratings_cost_no_more_queries(as_user: As, cast: Cast, project: Project, rated: None) -> None:
    carol = as_user(cast.carol)
    asked(carol)
    with CaptureQueriesContext(connection) as captured:
        asked(carol)
    assert len(captured) < 20
