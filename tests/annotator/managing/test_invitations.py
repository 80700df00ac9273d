"""Links by which people join a project: who may come in by one, and when it has ended."""

from datetime import timedelta

import pytest

from annotator.accounts.passwords import UnknownLink
from annotator.managing import archive, invitations, members
from annotator.managing.invitations import (
    AlreadyMember,
    InvitationEnded,
    InvitationInput,
    StillExcluded,
    UnusableInvitation,
)
from annotator.models import AuditEntry, Exclusion, Invitation, Membership, Project, Role, User
from tests.builders import NOW, make_member, make_user
from tests.conftest import Cast

PASSWORD = "tall order 98 x"


def made(project: Project, cast: Cast, **wish: object) -> tuple[Invitation, str]:
    return invitations.invite(project, InvitationInput(**wish), by=cast.carol, now=NOW)  # type: ignore[arg-type]


def test_a_new_person_joins_with_a_name_and_a_password_of_their_own(project: Project, cast: Cast) -> None:
    _, secret = made(project, cast, role=Role.REVIEWER, quota=7, languages=["en"])
    member = invitations.join(secret, username="frank", password=PASSWORD, now=NOW)
    assert (member.role, member.quota, member.languages) == (Role.REVIEWER, 7, ["en"])
    assert member.user.check_password(PASSWORD)
    assert not member.user.must_change_password


def test_an_account_joins(project: Project, cast: Cast) -> None:
    row, secret = made(project, cast)
    assert invitations.accept(secret, cast.dave, now=NOW).role == Role.ANNOTATOR
    row.refresh_from_db()
    assert (row.taken, [use.user for use in row.uses.all()]) == (1, [cast.dave])


def test_only_a_hash_is_stored(project: Project, cast: Cast) -> None:
    row, secret = made(project, cast, meant_for="Frank", email="frank@example.org")
    invitations.accept(secret, cast.dave, now=NOW)
    stored = str(list(Invitation.objects.filter(pk=row.pk).values())) + str(list(AuditEntry.objects.values()))
    assert secret not in stored
    assert "frank@example.org" not in str(list(AuditEntry.objects.values()))


def test_a_link_is_used_once(project: Project, cast: Cast) -> None:
    _, secret = made(project, cast)
    invitations.accept(secret, cast.dave, now=NOW)
    with pytest.raises(InvitationEnded, match="used up"):
        invitations.join(secret, username="frank", password=PASSWORD, now=NOW)
    assert not User.objects.filter(username="frank").exists()


def test_a_link_for_two_lets_two_in(project: Project, cast: Cast) -> None:
    row, secret = made(project, cast, places=2)
    invitations.accept(secret, cast.dave, now=NOW)
    invitations.join(secret, username="frank", password=PASSWORD, now=NOW)
    assert invitations.state_of(Invitation.objects.get(pk=row.pk), now=NOW) == Invitation.State.USED


def test_an_expired_link_lets_nobody_in(project: Project, cast: Cast) -> None:
    _, secret = made(project, cast, days=2)
    assert invitations.invitation_of(secret, now=NOW + timedelta(hours=47)).project == project
    with pytest.raises(InvitationEnded, match="expired"):
        invitations.accept(secret, cast.dave, now=NOW + timedelta(days=2))


def test_a_revoked_link_lets_nobody_in(project: Project, cast: Cast) -> None:
    row, secret = made(project, cast)
    for _ in range(2):
        invitations.revoke(row, now=NOW)
    with pytest.raises(InvitationEnded, match="revoked"):
        invitations.accept(secret, cast.dave, now=NOW)
    assert AuditEntry.objects.filter(action="invitation.revoked").count() == 1


def test_another_secret_is_nobodys(project: Project, cast: Cast) -> None:
    _, secret = made(project, cast)
    for wrong in ("", "x", secret[:-1], secret.swapcase()):
        with pytest.raises(UnknownLink):
            invitations.accept(wrong, cast.dave, now=NOW)


def test_who_no_longer_manages_lets_nobody_in(project: Project, cast: Cast) -> None:
    """Or a manager who is dismissed could come back by a link of their own."""
    lead = make_member(project, make_user("lead"), role=Role.MANAGER)
    _, secret = invitations.invite(project, InvitationInput(role=Role.MANAGER), by=lead.user, now=NOW)
    members.dismiss(lead)
    with pytest.raises(InvitationEnded, match="revoked"):
        invitations.accept(secret, lead.user, now=NOW)


def test_a_closed_account_s_links_end(project: Project, cast: Cast) -> None:
    _, secret = made(project, cast)
    User.objects.filter(pk=cast.carol.pk).update(is_active=False)
    with pytest.raises(InvitationEnded):
        invitations.accept(secret, cast.dave, now=NOW)


def test_an_archived_project_lets_nobody_in(project: Project, cast: Cast) -> None:
    _, secret = made(project, cast)
    archive.archive(project, now=NOW)
    with pytest.raises(InvitationEnded, match="archived"):
        invitations.accept(secret, cast.dave, now=NOW)


def test_a_member_takes_no_place(project: Project, cast: Cast) -> None:
    row, secret = made(project, cast)
    with pytest.raises(AlreadyMember, match="already, as annotator"):
        invitations.accept(secret, cast.alice, now=NOW)
    row.refresh_from_db()
    assert row.taken == 0


def test_nobody_loses_a_role_by_a_link(project: Project, cast: Cast) -> None:
    _, secret = made(project, cast)
    with pytest.raises(AlreadyMember):
        invitations.accept(secret, cast.carol, now=NOW)
    assert Membership.objects.get(user=cast.carol).role == Role.MANAGER


def test_a_member_may_be_invited_to_a_role_that_may_do_more(project: Project, cast: Cast) -> None:
    _, secret = made(project, cast, role=Role.MANAGER)
    assert invitations.accept(secret, cast.alice, now=NOW).role == Role.MANAGER
    assert User.objects.get(username="alice").is_staff


def test_who_is_excluded_stays_out(project: Project, cast: Cast) -> None:
    Exclusion.objects.create(project=project, annotator=cast.dave, reason="A bot.", by=cast.carol, made_at=NOW)
    row, secret = made(project, cast)
    with pytest.raises(StillExcluded):
        invitations.accept(secret, cast.dave, now=NOW)
    row.refresh_from_db()
    assert row.taken == 0


@pytest.mark.parametrize(
    ("name", "password", "error"),
    [
        ("alice", PASSWORD, members.RefusedName),
        ("alıce", PASSWORD, members.RefusedName),
        ("A1ice", PASSWORD, members.RefusedName),
        ("imported.1", PASSWORD, members.RefusedName),
        ("fr ank", PASSWORD, members.RefusedName),
        ("frank", "short", members.WeakPassword),
        ("frank", "12345678901", members.WeakPassword),
    ],
)
def test_a_refused_account_takes_no_place(
    project: Project, cast: Cast, name: str, password: str, error: type[Exception]
) -> None:
    row, secret = made(project, cast)
    with pytest.raises(error):
        invitations.join(secret, username=name, password=password, now=NOW)
    row.refresh_from_db()
    assert (row.taken, User.objects.filter(username="frank").exists()) == (0, False)


@pytest.mark.parametrize(
    ("wish", "field"),
    [
        ({"days": 0}, "days"),
        ({"days": 91}, "days"),
        ({"places": 0}, "places"),
        ({"places": 501}, "places"),
        ({"role": "owner"}, "role"),
        ({"role": Role.MANAGER, "places": 2}, "places"),
        ({"quota": -1}, "quota"),
        ({"quota": 2**31}, "quota"),
        ({"email": "a@example.org", "places": 2}, "places"),
    ],
)
def test_what_no_invitation_can_be_is_refused(
    project: Project, cast: Cast, wish: dict[str, object], field: str
) -> None:
    with pytest.raises(UnusableInvitation) as refused:
        made(project, cast, **wish)
    assert list(refused.value.errors) == [field]
    assert not Invitation.objects.exists()


def test_a_language_that_no_task_can_have_is_refused(project: Project, cast: Cast) -> None:
    with pytest.raises(members.UnknownLanguage, match="Write en"):
        made(project, cast, languages=["English"])


def test_the_one_who_joins_is_recorded_as_who_acted(project: Project, cast: Cast) -> None:
    _, secret = made(project, cast)
    invitations.join(secret, username="frank", password=PASSWORD, now=NOW)
    actions = ("account.created", "membership.created", "invitation.accepted")
    assert {entry.actor for entry in AuditEntry.objects.filter(action__in=actions)} == {"frank"}
