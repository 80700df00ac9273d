"""Segments from somebody who means harm, or has the longest texts: a clear error, or the right result."""

import time
from typing import Any

import pytest
from rest_framework.test import APIClient

from annotator.infrastructure.limits import MOST_SEGMENTS
from annotator.models import Label, Project, Rating, Response
from annotator.stages.segmenting import is_partition, ranges
from tests.annotator.segmented import ASPECTS, make_segmented_project
from tests.builders import imported, make_member, make_user, task_row
from tests.conftest import As

pytestmark = pytest.mark.slow
ODD = {
    "combining marks": "e\u0301te\u0301. a\u0308hnlich! " * 30,
    "joined emoji": "\U0001f468\u200d\U0001f469\u200d\U0001f467. \U0001f1e9\U0001f1ea! " * 30,
    "right to left": "\u202eاليوم جميل. غدا أجمل؟ " * 30,
    "no words": "... !!! ??? " * 30,
    "line ends of all kinds": "One.\r\nTwo.\u2028Three.\u0085Four.\x0bFive.\x0c",
    "an open fence": "See:\n```\n" + "x = 1. y = 2.\n" * 30,
    "zero-width space": "One.\u200bTwo.\ufeff Three.",
}


@pytest.fixture
def project(db: None) -> Project:
    return make_segmented_project(base_annotators=1, max_annotators=1, keep=1, allow_recut=True)


@pytest.fixture
def client(project: Project, as_user: As) -> APIClient:
    alice = make_user("alice")
    make_member(project, alice)
    return as_user(alice)


def leased(project: Project, client: APIClient, text: str, **fields: Any) -> Any:
    assert imported(project, task_row() | {"responses": [{"text": text, **fields}]}).rejected == []
    answer = client.post(f"/api/v1/projects/{project.slug}/next/")
    assert answer.status_code == 200, answer.json()
    return answer.json()


def rated(client: APIClient, lease: Any, **fields: Any) -> Any:
    (response,) = lease["task"]["responses"]
    segments = [{"index": one["index"], "scores": dict.fromkeys(ASPECTS, 3)} for one in response["segments"]]
    rating = {"response": response["id"], "scores": {}, "segments": segments, **fields}
    address = f"/api/v1/assignments/{lease['assignment']}/annotation/"
    return client.put(address, {"ratings": [rating]}, format="json")


@pytest.mark.parametrize("text", ODD.values(), ids=ODD)
def test_odd_texts_are_cut_rated_and_labelled(project: Project, client: APIClient, text: str) -> None:
    lease = leased(project, client, text)
    stored = Response.objects.get()
    assert is_partition(len(stored.text), ranges(stored.segments))
    assert rated(client, lease).status_code == 201
    assert len(Label.objects.get().segment_scores or ()) == len(stored.segments or ())


def test_a_long_text_of_the_most_segments_is_rated_within_seconds(project: Project, client: APIClient) -> None:
    text = f"It rains again today{' and again' * 10}. " * MOST_SEGMENTS
    assert len(text) > 100_000
    began = time.monotonic()
    lease = leased(project, client, text)
    assert len(lease["task"]["responses"][0]["segments"]) == MOST_SEGMENTS
    answer = rated(client, lease)
    assert answer.status_code == 201, answer.content[:500]
    assert len(Rating.objects.get().segment_scores or ()) == MOST_SEGMENTS
    assert time.monotonic() - began < 15


def test_a_text_beyond_the_limit_is_one_segment(project: Project, client: APIClient) -> None:
    lease = leased(project, client, "It rains. " * 30_000)
    assert len(lease["task"]["responses"][0]["segments"]) == 1


@pytest.mark.parametrize(
    "cut",
    [
        [[0, 5], [4, 19]],
        [[0, 5], [5, 5], [5, 19]],
        [[19, 0]],
        [[0, 20]],
        [[-1, 19]],
        [[0, "19"]],
        [[0, 19, 19]],
        [[]],
        {"0": [0, 19]},
        [[0, 2**70]],
        [[None, 19]],
        [[[0], 19]],
    ],
    ids=str,
)
def test_a_cut_that_is_none_is_refused(project: Project, client: APIClient, cut: Any) -> None:
    lease = leased(project, client, "It rains. It pours.")
    answer = rated(client, lease, cut=cut)
    assert answer.status_code == 400, answer.json()
    assert not Rating.objects.exists()


@pytest.mark.parametrize("segments", [[[0, 10], [10, 2**80]], [["x" * 100_000]], ["\ud800"], [[0, 10]] * 6_000, 7])
def test_given_segments_that_are_none_are_refused_by_the_line(project: Project, segments: Any) -> None:
    row = task_row("t") | {"responses": [{"text": "It rains. It pours.", "segments": segments}]}
    (rejected,) = imported(project, row).rejected
    assert rejected.line == 1
    assert len(rejected.error) < 500


def test_a_rating_of_too_many_segments_costs_little(project: Project, client: APIClient) -> None:
    lease = leased(project, client, "It rains. It pours.")
    (response,) = lease["task"]["responses"]
    scores = dict.fromkeys(ASPECTS, 3)
    segments = [{"index": index, "scores": scores} for index in range(MOST_SEGMENTS + 1)]
    rating = {"response": response["id"], "scores": {}, "segments": segments}
    answer = client.put(f"/api/v1/assignments/{lease['assignment']}/annotation/", {"ratings": [rating]}, format="json")
    assert answer.status_code == 400
    assert len(answer.content) < 2_000
