"""Whatever import and cutting admit, the doors behind them carry: one module states the limits."""

from itertools import pairwise
from typing import Any

import pytest

from annotator.infrastructure import limits
from annotator.models import Project, Task
from annotator.stages import annotation, assignment
from annotator.stages.annotation import ResponseRating, Submission, require_room
from annotator.stages.segmenting import NotAPartition, cut
from rewards.learning import data as learning
from rewards.learning.config import MOST_WEIGHTS
from tests.annotator.segmented import make_segmented_project
from tests.builders import imported, make_member, make_user, task_row

pytestmark = pytest.mark.django_db


def row_of(counts: list[int], name: str = "t") -> dict[str, Any]:
    """A task whose responses come with so many segments."""
    responses = [
        {"text": "a" * count, "segments": [list(pair) for pair in pairwise(range(count + 1))]} for count in counts
    ]
    return task_row(name) | {"responses": responses}


@pytest.fixture
def segmented(db: None) -> Project:
    return make_segmented_project(base_annotators=1, max_annotators=1, keep=1, allow_recut=True)


def test_a_task_has_so_many_segments_in_all(segmented: Project) -> None:
    half = limits.MOST_SEGMENTS // 2
    assert imported(segmented, row_of([half, half])).created == 1
    (rejected,) = imported(segmented, row_of([half, half, 1], "more")).rejected
    assert rejected.error.startswith("the responses have 1,001 segments together, and at most 1,000 are accepted")


@pytest.mark.parametrize("responses", [1, 2, limits.MOST_RESPONSES])
def test_responses_that_are_cut_share_the_room_of_their_task(segmented: Project, responses: int) -> None:
    texts = [{"text": f"{number}. " + "It rains. " * 700} for number in range(responses)]
    assert imported(segmented, task_row("t") | {"responses": texts}).rejected == []
    task = Task.objects.get()
    cuts = annotation.cuts_of(segmented, task, list(task.responses.all()))
    assert sum(map(len, cuts.values())) <= limits.MOST_SEGMENTS
    assert min(map(len, cuts.values())) >= min(350, limits.MOST_SEGMENTS // responses // 2)


def test_a_cut_takes_no_more_segments_than_it_is_allowed() -> None:
    assert len(cut("It rains. " * 700, most=50)) == 50


def test_too_many_segments_together_are_refused_in_numbers() -> None:
    require_room([600, 400])
    with pytest.raises(NotAPartition, match="1001 segments together, and at most 1000"):
        require_room([600, 401])


def test_a_rater_cuts_responses_no_finer_than_the_page_carries(segmented: Project) -> None:
    alice = make_user("alice")
    make_member(segmented, alice)
    texts = [{"text": "ab" * 600}, {"text": "ab" * 600}]
    assert imported(segmented, task_row("t") | {"responses": texts}).rejected == []
    task = Task.objects.get()
    fine = tuple(pairwise(range(0, 1201, 2)))
    cuts = {response.pk: ResponseRating({}, cut=fine) for response in task.responses.all()}
    held = assignment.claim(segmented, alice, now=task.created_at).assignment
    assert held is not None
    with pytest.raises(annotation.IncompleteRating, match="1200 segments together"):
        annotation.submit(held.pk, Submission(cuts), now=task.created_at)


def test_what_a_rater_writes_has_a_limit_in_all() -> None:
    texts = ["x" * limits.LONGEST_EDIT] * 4
    assert annotation.written_fault(texts) == ""
    assert "has 200001 characters in all, and at most 200000" in annotation.written_fault([*texts, "y"])


def test_a_message_of_many_parts_is_refused_in_numbers(project: Project) -> None:
    parts = [{"type": "text", "text": "x"}] * (limits.MOST_PARTS + 1)
    row = task_row("t") | {"messages": [{"role": "user", "content": parts}]}
    (rejected,) = imported(project, row).rejected
    assert "has 1,001 parts, and at most 1,000 are accepted" in rejected.error


def test_the_trainer_takes_what_a_rubric_may_have() -> None:
    # The learning core imports nothing of ours, so its numbers are its own.
    assert learning.MOST_LEVELS >= limits.MOST_LEVELS
    assert MOST_WEIGHTS >= limits.MOST_ATTRIBUTES
