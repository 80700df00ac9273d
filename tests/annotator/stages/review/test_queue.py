"""The queue's order, and that reading it costs the same however long it is."""

import pytest
from django.db import connection

from annotator.models import Assignment, Project, Task, User
from annotator.stages.review.queue import QueueKey, next_waiting, queue_from, waiting
from tests.builders import NOW, imported, ratings_row


@pytest.fixture
def queue(project: Project) -> list[Task]:
    """Eight tasks, of two spreads, in their order."""
    Project.objects.update(max_annotators=3)
    project.refresh_from_db()
    imported(project, *(ratings_row(f"p{number}", "a", [0, 4, 4 - number % 2]) for number in range(6)))
    imported(project, *(ratings_row(f"q{number}", "a", [0, 3, 3]) for number in range(2)))
    return list(waiting(project))


def following(project: Project, place: QueueKey, *, manages: bool = False) -> Task | None:
    reviewer, _ = User.objects.get_or_create(username="rita")
    return next_waiting(project, after=place, reviewer=reviewer, manages=manages)


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_pages_leave_nothing_out_and_repeat_nothing(project: Project, queue: list[Task], size: int) -> None:
    walked: list[Task] = []
    while more := queue_from(waiting(project), after=QueueKey.of(walked[-1]) if walked else None, size=size):
        walked += more
    assert walked == queue
    assert [task.review_spread for task in walked] == [4] * 6 + [3] * 2


def test_after_the_last_one_comes_the_first(project: Project, queue: list[Task]) -> None:
    places = [QueueKey.of(task) for task in queue]
    assert [following(project, place) for place in places] == [*queue[1:], queue[0]]
    Task.objects.exclude(pk=queue[0].pk).update(review_reason="")
    assert following(project, places[0]) is None


def test_what_only_a_manager_may_decide_is_skipped_for_a_reviewer(project: Project, queue: list[Task]) -> None:
    first, aside, third = queue[:3]
    Task.objects.filter(pk=aside.pk).update(state=Task.State.QUARANTINED, review_reason="quarantine")
    assert following(project, QueueKey.of(first)) == third
    assert following(project, QueueKey.of(first), manages=True) == aside


def test_what_the_reviewer_alone_has_rated_is_skipped(project: Project, queue: list[Task]) -> None:
    first, own, third = queue[:3]
    rita = User.objects.create(username="rita")
    own.assignments.exclude(pk=own.assignments.earliest("pk").pk).update(counts=False, slot=None)
    own.assignments.filter(counts=True).update(annotator=rita)
    assert following(project, QueueKey.of(first)) == third


def test_what_the_reviewer_is_rating_is_skipped(project: Project, queue: list[Task]) -> None:
    first, held, third = queue[:3]
    rita = User.objects.create(username="rita")
    Task.objects.filter(pk=held.pk).update(slots_wanted=9)
    Assignment.objects.create(task=held, annotator=rita, slot=9, leased_at=NOW, lease_expires_at=NOW)
    assert following(project, QueueKey.of(first)) == third


@pytest.mark.parametrize("kind", ["", "dropped"])
def test_every_page_begins_in_the_index_where_its_first_row_is(project: Project, queue: list[Task], kind: str) -> None:
    tasks = waiting(project, reason=kind)
    with connection.cursor() as cursor:
        # In a table this small the other index costs the same. What was inserted has checks that wait until then.
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE; DROP INDEX task_by_spread")
        cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_sort = off")
    for part in (tasks, tasks.filter(review_spread=4, pk__gt=1), tasks.filter(review_spread__lt=4)):
        plan = part[:25].explain()
        assert "Index Scan using task_review_order" in plan
        assert "Sort" not in plan
    assert "Index Cond: ((project_id" in plan
