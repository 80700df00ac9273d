"""Tasks leased ahead: they count like any lease, and nobody holds what others need."""

import uuid
from datetime import timedelta

import pytest

from annotator.models import Assignment, Membership, Project, Task
from annotator.stages import annotation, assignment
from annotator.stages.assignment import claims_of
from tests.builders import NOW, claimed, make_task, rate, submission
from tests.conftest import Cast

pytestmark = pytest.mark.django_db
SHIFT = uuid.UUID(int=1)


@pytest.fixture
def tasks(project: Project) -> list[Task]:
    return [make_task(project) for _ in range(12)]


def ahead(project: Project, person: object, shown: int | None = None, shift: uuid.UUID = SHIFT) -> list[int]:
    """The ids of what the person holds ahead after asking for more."""
    held = assignment.stock_up(project, person, shift=shift, shown=shown, now=NOW)  # type: ignore[arg-type]
    return [claim.assignment.pk for claim in claims_of(held) if claim.assignment]


def test_as_many_as_the_project_says_and_the_same_when_asked_again(
    project: Project, cast: Cast, tasks: list[Task]
) -> None:
    shown = claimed(project, cast.alice)
    first = ahead(project, cast.alice, shown.pk)
    assert len(first) == 3
    assert ahead(project, cast.alice, shown.pk) == first
    assert set(Assignment.objects.filter(pk__in=first).values_list("state", "shift")) == {("leased", SHIFT)}


def test_they_hold_slots_like_any_lease(project: Project, cast: Cast, tasks: list[Task]) -> None:
    Task.objects.update(slots_wanted=1, open_slots=1)
    ahead(project, cast.alice, claimed(project, cast.alice).pk)
    mine = set(Assignment.objects.values_list("task", flat=True))
    assert Task.objects.filter(open_slots=0).count() == 4
    assert claimed(project, cast.bob).task_id not in mine


@pytest.mark.parametrize(("own", "number"), [(None, 3), (5, 5), (0, 0)])
def test_a_person_may_have_a_number_of_their_own(
    project: Project, cast: Cast, tasks: list[Task], own: int | None, number: int
) -> None:
    Membership.objects.filter(user=cast.alice).update(tasks_ahead=own)
    assert len(ahead(project, cast.alice)) == number


@pytest.mark.parametrize(("quota", "number"), [(1, 0), (3, 2), (4, 3)])
def test_never_beyond_the_quota(project: Project, cast: Cast, tasks: list[Task], quota: int, number: int) -> None:
    Project.objects.update(quota=quota)
    project.refresh_from_db()
    assert len(ahead(project, cast.alice, claimed(project, cast.alice).pk)) == number


@pytest.mark.parametrize(("number", "held"), [(1, 0), (2, 0), (3, 1), (5, 2), (7, 3), (9, 3)])
def test_an_equal_share_at_most_of_what_is_open(project: Project, cast: Cast, number: int, held: int) -> None:
    """One task is shown; half of the others stay for somebody who may come."""
    for _ in range(number):
        make_task(project)
    assert len(ahead(project, cast.alice, claimed(project, cast.alice).pk)) == held


def test_what_is_too_much_once_others_work_is_given_back(project: Project, cast: Cast, tasks: list[Task]) -> None:
    Task.objects.update(slots_wanted=1, open_slots=1)
    shown = claimed(project, cast.alice)
    assert len(ahead(project, cast.alice, shown.pk)) == 3
    Task.objects.filter(open_slots=1).update(state=Task.State.RETIRED)
    assert len(ahead(project, cast.alice, shown.pk)) == 1
    assert Task.objects.open().filter(open_slots=1).count() == 2
    assert claimed(project, cast.bob).task.state == Task.State.OPEN


def test_the_next_claim_is_the_oldest_of_them(project: Project, cast: Cast, tasks: list[Task]) -> None:
    shown = claimed(project, cast.alice)
    held = ahead(project, cast.alice, shown.pk)
    assert claimed(project, cast.alice).pk == shown.pk
    task = shown.task
    annotation.submit(shown.pk, submission(task), now=NOW)
    following = claimed(project, cast.alice)
    assert (following.pk, following.shift) == (held[0], None)


def test_what_is_shown_is_ahead_no_more(project: Project, cast: Cast, tasks: list[Task]) -> None:
    first = ahead(project, cast.alice)
    second = ahead(project, cast.alice, first[0])
    assert second[:2] == first[1:]
    assert len(second) == 3
    assert Assignment.objects.get(pk=first[0]).shift is None


def test_closing_gives_back_what_was_not_shown(project: Project, cast: Cast, tasks: list[Task]) -> None:
    shown = claimed(project, cast.alice)
    held = ahead(project, cast.alice, shown.pk)
    assert assignment.let_go(cast.alice, shift=uuid.UUID(int=2)) == 0
    assert assignment.let_go(cast.alice, shift=SHIFT) == 3
    assert set(Assignment.objects.filter(pk__in=held).values_list("state", "slot", "shift")) == {
        ("expired", None, None)
    }
    assert Task.objects.filter(open_slots=3).count() == 11
    shown.refresh_from_db()
    assert shown.state == Assignment.State.LEASED


def test_another_page_goes_on_with_what_the_first_held(project: Project, cast: Cast, tasks: list[Task]) -> None:
    held = ahead(project, cast.alice)
    assert ahead(project, cast.alice, shift=uuid.UUID(int=2)) == held
    assert assignment.let_go(cast.alice, shift=SHIFT) == 0


def test_they_end_with_time_and_late_work_counts_where_there_is_room(
    project: Project, cast: Cast, tasks: list[Task]
) -> None:
    held = ahead(project, cast.alice)
    assignment.expire_all(now=NOW + timedelta(hours=1))
    assert set(Assignment.objects.values_list("state", flat=True)) == {"expired"}
    late = Assignment.objects.get(pk=held[0])
    done = annotation.submit(late.pk, submission(late.task), now=NOW + timedelta(hours=2))
    assert done.annotation.assignment.counts


def test_who_is_barred_holds_nothing(project: Project, cast: Cast, tasks: list[Task]) -> None:
    Project.objects.update(paused=True)
    project.refresh_from_db()
    assert ahead(project, cast.alice) == []


def test_what_is_left_counts_them(project: Project, cast: Cast, tasks: list[Task]) -> None:
    shown = claimed(project, cast.alice)
    assert assignment.tasks_left(project, cast.alice) == 11
    ahead(project, cast.alice, shown.pk)
    assert assignment.tasks_left(project, cast.alice) == 11


def test_a_task_that_was_set_aside_is_not_held_any_more(project: Project, cast: Cast, tasks: list[Task]) -> None:
    held = ahead(project, cast.alice)
    Task.objects.filter(assignments=held[0]).update(state=Task.State.QUARANTINED)
    assert held[0] not in ahead(project, cast.alice)


def test_other_people_and_projects_are_left_alone(project: Project, cast: Cast, tasks: list[Task]) -> None:
    theirs = ahead(project, cast.bob)
    rate(project, cast.alice)
    ahead(project, cast.alice)
    assignment.let_go(cast.alice)
    assert Assignment.objects.leased().filter(pk__in=theirs).count() == 3
