"""The largest task that import admits is rated on the page, with scripts and without, by a draft, and over REST."""

import json
import time
from itertools import pairwise
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client
from rest_framework.test import APIClient

from annotator.infrastructure.limits import (
    LONGEST_KEY,
    LONGEST_WRITTEN,
    MOST_ATTRIBUTES,
    MOST_LEVELS,
    MOST_RESPONSES,
    MOST_SEGMENTS,
)
from annotator.managing import rubrics
from annotator.managing.preset_rubrics import AttributeText, RubricText
from annotator.models import Assignment, Draft, Project, Rating, Response, User
from annotator.stages import annotation, assignment
from tests.builders import NOW, imported, make_member, make_project, make_user, task_row

pytestmark = pytest.mark.django_db
ASPECTS = [f"{'long_name' * 10}"[: LONGEST_KEY - 3] + f"_{number:02}" for number in range(MOST_ATTRIBUTES)]
LEVELS = tuple(f"level {number}" for number in range(MOST_LEVELS))
AS_BROWSERS_DO = "application/x-www-form-urlencoded"
COUNTS = [40] * 12 + [38] * 12 + [32, 32]


@pytest.fixture
def alice(db: None) -> User:
    return make_user("alice")


@pytest.fixture
def held(alice: User) -> Assignment:
    project = make_project(ask_feedback=True, ask_edit=True)
    rating = RubricText(
        key="large",
        name="Large",
        attributes=tuple(AttributeText(key, key[-20:], LEVELS, scope="segment") for key in ASPECTS),
    )
    rubrics.publish(project, rating)
    make_member(project, alice)
    assert (len(COUNTS), sum(COUNTS)) == (MOST_RESPONSES, MOST_SEGMENTS)
    responses = [
        {"text": "a" * count, "segments": [list(pair) for pair in pairwise(range(count + 1))]} for count in COUNTS
    ]
    assert imported(project, task_row("t") | {"responses": responses}).rejected == []
    claimed = assignment.claim(Project.objects.get(), alice, now=NOW).assignment
    assert claimed is not None
    return claimed


@pytest.fixture
def page(client: Client, alice: User) -> Client:
    client.force_login(alice)
    return client


def written(held: Assignment) -> dict[str, str]:
    """Everything besides the cells, of which the edits and the feedback are as long as all texts may be together."""
    numbers = [response.public_id for response in annotation.responses_to_rate(held)]
    form = {f"written-feedback-{number}": "x" for number in numbers}
    form |= {f"written-edit-{number}": "ä" * (LONGEST_WRITTEN // 4) for number in numbers[:3]}
    return form | {"justification": "ä" * 19_900}


def cells(response: Response) -> dict[str, str]:
    indexes = range(len(response.segments or ()))
    return {f"seg-{response.public_id}-{index}-{key}": "7" for index in indexes for key in ASPECTS}


def one_by_one(held: Assignment) -> dict[str, str]:
    every = [cells(response) for response in annotation.responses_to_rate(held)]
    empty = {f"comment-{r.public_id}-{n}": "" for r in held.task.responses.all() for n in range(len(r.segments or ()))}
    return {name: value for part in every for name, value in part.items()} | empty | written(held)


def folded(held: Assignment) -> dict[str, str]:
    fields = {}
    for response in annotation.responses_to_rate(held):
        rows = {str(index): "7" * MOST_ATTRIBUTES for index in range(len(response.segments or ()))}
        fields[f"scored-segments-{response.public_id}"] = json.dumps({"aspects": ASPECTS, "rows": rows})
    return fields | written(held)


def assert_all_stored() -> None:
    stored = Rating.objects.all()
    assert len(stored) == MOST_RESPONSES
    assert sum(len(rating.segment_scores or ()) for rating in stored) == MOST_SEGMENTS
    assert {score for rating in stored for row in rating.segment_scores or () for score in row} == {6}


@pytest.mark.parametrize("form", [one_by_one, folded])
def test_the_page_takes_it(page: Client, held: Assignment, form: Any) -> None:
    answer = page.post(f"/assignments/{held.pk}/submit/", urlencode(form(held)), content_type=AS_BROWSERS_DO)
    assert answer.status_code == 302, answer.content[:2_000]
    assert_all_stored()


def test_a_page_with_scripts_sends_little_more_than_the_answers(held: Assignment) -> None:
    of_segments = {name: value for name, value in folded(held).items() if name.startswith("scored-")}
    assert len(of_segments) == MOST_RESPONSES
    assert sum(map(len, of_segments.values())) < 64_000


def test_a_draft_takes_it_and_the_page_shows_it(page: Client, held: Assignment) -> None:
    began = time.monotonic()
    answer = page.post(f"/assignments/{held.pk}/draft/", urlencode(folded(held)), content_type=AS_BROWSERS_DO)
    assert answer.status_code == 200, answer.content[:500]
    shown = page.get("/projects/talk/annotate/").content.decode()
    assert shown.count('value="7" data-levels') == MOST_SEGMENTS * MOST_ATTRIBUTES
    assert time.monotonic() - began < 20


def test_rest_takes_it(alice: User, held: Assignment) -> None:
    rest = APIClient()
    rest.force_authenticate(alice)
    scores = dict.fromkeys(ASPECTS, 6)
    ratings = [
        {
            "response": response.public_id,
            "scores": {},
            "feedback": "x",
            "segments": [{"index": index, "scores": scores} for index in range(len(response.segments or ()))],
        }
        for response in annotation.responses_to_rate(held)
    ]
    answer = rest.put(f"/api/v1/assignments/{held.pk}/annotation/", {"ratings": ratings}, format="json")
    assert answer.status_code == 201, answer.content[:500]
    assert_all_stored()


def test_a_draft_changes_only_what_it_says(page: Client, held: Assignment) -> None:
    response = annotation.responses_to_rate(held)[0]
    name, address = f"scored-segments-{response.public_id}", f"/assignments/{held.pk}/draft/"
    for row in ("75", ".4", "6 "):
        said = json.dumps({"aspects": ASPECTS[:2], "rows": {"3": row}})
        assert page.post(address, {name: said, "changed": name}).status_code == 200
    place = f"seg-{response.public_id}-3"
    stored = {name: value for name, value in Draft.objects.get().form.items() if name.startswith("seg-")}
    assert stored == {f"{place}-{ASPECTS[0]}": "6", f"{place}-{ASPECTS[1]}": ""}


@pytest.mark.parametrize(
    "said", ["", "[]", "{", '{"aspects": [1], "rows": {}}', '{"aspects": [], "rows": {"0": 7}}', "[" * 9_999]
)
def test_segments_that_no_page_writes_are_refused(page: Client, held: Assignment, said: str) -> None:
    assert page.post(f"/assignments/{held.pk}/draft/", {"scored-segments-1": said}).status_code == 400
    assert not Draft.objects.exists()
