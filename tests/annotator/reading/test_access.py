"""Who may reach what."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.http import Http404
from django.test import RequestFactory
from pytest_django import DjangoAssertNumQueries

from annotator.models import Assignment, Membership, Project, User
from annotator.reading import access
from tests.builders import claimed, make_member, make_project, make_task, make_user
from tests.conftest import Cast

Reach = Callable[[User, str], Project]


@pytest.fixture
def root(project: Project) -> User:
    return make_user("root", is_superuser=True)


@pytest.mark.parametrize("reach", [access.visible_project, access.reviewed_project, access.managed_project])
def test_a_stranger_finds_nothing(cast: Cast, reach: Reach) -> None:
    with pytest.raises(Http404):
        reach(cast.dave, "talk")


@pytest.mark.parametrize("reach", [access.visible_project, access.reviewed_project, access.managed_project])
def test_managers_and_superusers_reach_everything(project: Project, cast: Cast, root: User, reach: Reach) -> None:
    assert reach(cast.carol, "talk") == reach(root, "talk") == project


def test_reviewers_review_and_do_not_manage(project: Project, rita: User) -> None:
    assert access.reviewed_project(rita, "talk") == project
    with pytest.raises(PermissionDenied):
        access.managed_project(rita, "talk")


def test_one_statement_fetches_the_project_with_its_rubric_and_the_role(
    cast: Cast, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(1):
        assert access.managed_project(cast.carol, "talk").rubric.key == "helpsteer2"


def test_annotators_neither_review_nor_manage(project: Project, cast: Cast) -> None:
    assert access.visible_project(cast.alice, "talk") == project
    for reach in (access.reviewed_project, access.managed_project):
        with pytest.raises(PermissionDenied):
            reach(cast.alice, "talk")


def test_a_role_holds_in_its_project_only(cast: Cast) -> None:
    make_member(make_project("other"), cast.carol)
    with pytest.raises(PermissionDenied):
        access.managed_project(cast.carol, "other")
    assert [project.slug for project in access.reviewed_projects(cast.carol)] == ["talk"]


def test_to_rate_one_has_to_be_a_member(cast: Cast, root: User) -> None:
    assert access.membership(cast.alice, "talk").user == cast.alice
    for user in (cast.dave, root):
        with pytest.raises(Http404):
            access.membership(user, "talk")


def test_an_assignment_is_reached_by_its_holder_alone(project: Project, cast: Cast, root: User) -> None:
    make_task(project)
    held = claimed(project, cast.alice)
    assert access.own_assignment(cast.alice, held.pk) == held
    for user in (cast.bob, cast.carol, root):
        with pytest.raises(Http404):
            access.own_assignment(user, held.pk)


def test_the_assignment_of_one_who_left_is_out_of_reach(project: Project, cast: Cast) -> None:
    make_task(project)
    held = claimed(project, cast.alice)
    Membership.objects.filter(user=cast.alice).delete()
    with pytest.raises(Http404):
        access.own_assignment(cast.alice, held.pk)
    assert Assignment.objects.filter(pk=held.pk).exists()


def test_staff_and_managers_open_projects(cast: Cast, rita: User) -> None:
    assert access.may_create_projects(cast.carol)
    assert access.may_create_projects(make_user("staff", is_staff=True))
    assert not any(access.may_create_projects(user) for user in (cast.alice, cast.dave, rita))


def test_nobody_is_not_a_user() -> None:
    request = RequestFactory().get("/")
    request.user = AnonymousUser()
    with pytest.raises(PermissionDenied):
        access.user_of(request)
