"""Who joins and leaves a project."""

import pytest

from annotator.managing import members
from annotator.managing.members import RefusedName, WeakPassword
from annotator.models import Annotation, Assignment, Membership, Project, Role, User
from annotator.stages import annotation
from tests.builders import NOW, claimed, make_task, submission
from tests.conftest import Cast
from tests.refusals import refusal

PASSWORD = "tall order 9"


def test_an_account_is_admitted_once(project: Project, cast: Cast) -> None:
    first, again = (members.admit(project, username="dave", role=Role.REVIEWER) for _ in range(2))
    assert (first[1], again[1]) == (True, False)
    assert first[0] == again[0]


def test_a_new_name_needs_a_password(project: Project) -> None:
    with refusal("unknown_account", match="password"):
        members.admit(project, username="frank", role=Role.ANNOTATOR)


def test_a_password_makes_the_account(project: Project) -> None:
    member, created = members.admit(project, username="frank", password=PASSWORD)
    assert (created, member.role, member.user.check_password(PASSWORD)) == (True, Role.ANNOTATOR, True)


def test_a_password_never_changes_an_account_that_exists(project: Project, cast: Cast) -> None:
    members.admit(project, username="dave", password=PASSWORD)
    assert not User.objects.get(username="dave").check_password(PASSWORD)


@pytest.mark.parametrize(
    ("name", "password", "error"),
    [("frank", "short", WeakPassword), ("frank", "password1", WeakPassword), ("fr ank", PASSWORD, RefusedName)],
)
def test_a_weak_password_or_an_odd_name_makes_no_account(
    project: Project, name: str, password: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        members.admit(project, username=name, password=password)
    assert not User.objects.filter(username=name).exists()


def test_the_role_changes_where_one_is_given(project: Project, cast: Cast) -> None:
    assert members.admit(project, username="alice", role=Role.REVIEWER)[0].role == Role.REVIEWER
    assert members.admit(project, username="alice")[0].role == Role.REVIEWER


def test_who_leaves_gives_back_what_they_hold(project: Project, cast: Cast) -> None:
    task = make_task(project)
    claimed(project, cast.alice)
    members.dismiss(Membership.objects.get(user=cast.alice))
    task.refresh_from_db()
    assert task.open_slots == 3
    assert Assignment.objects.get().state == Assignment.State.RELEASED
    assert not Membership.objects.filter(user=cast.alice).exists()


def test_finished_work_stays(project: Project, cast: Cast) -> None:
    task = make_task(project)
    annotation.submit(claimed(project, cast.alice).pk, submission(task), now=NOW)
    members.dismiss(Membership.objects.get(user=cast.alice))
    assert Annotation.objects.count() == 1


def test_a_manager_may_enter_the_admin(project: Project) -> None:
    member, _ = members.admit(project, username="lead", role=Role.MANAGER, password="a long enough phrase")
    assert member.user.is_staff
    plain, _ = members.admit(project, username="rater", role=Role.ANNOTATOR, password="a long enough phrase")
    assert not plain.user.is_staff
