"""Links to a new password: they never let a manager into what they may not do anyway."""

from datetime import timedelta

import pytest

from annotator.accounts import tokens
from annotator.accounts.passwords import UnknownLink
from annotator.managing import members, password_links
from annotator.managing.members import WeakPassword
from annotator.managing.password_links import PasswordLinkEnded
from annotator.models import AuditEntry, PasswordLink, Project, Role, Token, User
from tests.builders import NOW, make_member, make_project, make_user
from tests.conftest import Cast
from tests.refusals import refusal

NEW = "as I like it, mostly"


@pytest.fixture
def other(project: Project, cast: Cast) -> Project:
    """Somebody else's project."""
    return make_project("other")


def secret_for(cast: Cast, project: Project, user: User, *, by: User | None = None) -> str:
    return password_links.make(user, by=by or cast.carol, project=project, now=NOW)[1]


def test_the_owner_chooses_a_new_password_once(project: Project, cast: Cast) -> None:
    tokens.issue(cast.alice)
    secret = secret_for(cast, project, cast.alice)
    password_links.choose(secret, NEW, now=NOW)
    alice = User.objects.get(username="alice")
    assert alice.check_password(NEW)
    assert not alice.must_change_password
    assert not Token.objects.exists()
    with pytest.raises(UnknownLink):
        password_links.choose(secret, "another one, later", now=NOW)
    assert AuditEntry.objects.get(action="password.set").actor == "alice"


def test_a_weak_password_leaves_the_link(project: Project, cast: Cast) -> None:
    secret = secret_for(cast, project, cast.alice)
    with pytest.raises(WeakPassword):
        password_links.choose(secret, "short", now=NOW)
    password_links.choose(secret, NEW, now=NOW)


def test_a_link_ends_after_a_day(project: Project, cast: Cast) -> None:
    secret = secret_for(cast, project, cast.alice)
    with pytest.raises(PasswordLinkEnded, match="expired"):
        password_links.choose(secret, NEW, now=NOW + timedelta(hours=24))


def test_a_new_link_ends_the_earlier_one(project: Project, cast: Cast) -> None:
    first, second = (secret_for(cast, project, cast.alice) for _ in range(2))
    with pytest.raises(UnknownLink):
        password_links.link_of(first, now=NOW)
    assert password_links.link_of(second, now=NOW).account == cast.alice


def test_a_password_that_is_changed_otherwise_ends_the_link(project: Project, cast: Cast) -> None:
    secret_for(cast, project, cast.alice)
    cast.alice.set_password(NEW)
    cast.alice.save()
    assert not PasswordLink.objects.exists()


def test_not_for_a_manager(project: Project, cast: Cast) -> None:
    make_member(project, cast.dave, role=Role.MANAGER)
    with refusal("for_administrators", match="manages a project"):
        secret_for(cast, project, cast.dave)


def test_not_for_somebody_who_is_asked_to_manage(project: Project, cast: Cast) -> None:
    members.give_role(cast.alice.memberships.select_related("project", "user").get(), Role.MANAGER)
    with refusal("for_administrators"):
        secret_for(cast, project, cast.alice)


@pytest.mark.parametrize("role", Role.values)
def test_not_for_somebody_in_another_s_project(project: Project, other: Project, cast: Cast, role: str) -> None:
    make_member(other, cast.alice, role=role)
    with refusal("for_administrators"):
        secret_for(cast, project, cast.alice)


def test_for_somebody_whose_projects_are_all_one_s_own(project: Project, other: Project, cast: Cast) -> None:
    make_member(other, cast.alice)
    make_member(other, cast.carol, role=Role.MANAGER)
    assert secret_for(cast, project, cast.alice)


@pytest.mark.parametrize("field", ["is_staff", "is_superuser"])
def test_not_for_staff(project: Project, cast: Cast, field: str) -> None:
    User.objects.filter(pk=cast.alice.pk).update(**{field: True})
    with refusal("for_administrators"):
        secret_for(cast, project, User.objects.get(username="alice"))


def test_not_for_a_stranger_nor_for_oneself_nor_by_a_reviewer(project: Project, cast: Cast) -> None:
    reviewer = make_member(project, make_user("rita"), role=Role.REVIEWER).user
    for user, by in ((cast.dave, cast.carol), (cast.carol, cast.carol), (cast.alice, reviewer), (cast.alice, cast.bob)):
        with refusal("for_administrators"):
            secret_for(cast, project, user, by=by)


def test_administrators_make_one_for_anybody(project: Project, cast: Cast) -> None:
    root = make_user("root", is_superuser=True)
    for user in (cast.carol, cast.dave, root):
        assert secret_for(cast, project, user, by=root)


def test_the_rule_holds_when_the_link_is_used(project: Project, other: Project, cast: Cast) -> None:
    """Or a manager would keep a link until the person manages something worth having."""
    secret = secret_for(cast, project, cast.alice)
    make_member(other, cast.alice, role=Role.MANAGER)
    with pytest.raises(PasswordLinkEnded, match="no longer valid"):
        password_links.choose(secret, NEW, now=NOW)


def test_who_is_dismissed_keeps_no_link(project: Project, cast: Cast) -> None:
    lead = make_member(project, make_user("lead"), role=Role.MANAGER)
    secret = secret_for(cast, project, cast.alice, by=lead.user)
    members.dismiss(lead)
    with pytest.raises(PasswordLinkEnded):
        password_links.choose(secret, NEW, now=NOW)
