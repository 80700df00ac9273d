"""A password of one's own choice."""

import pytest
from django.test import Client

from annotator.models import AuditEntry, User
from tests.builders import make_user

OLD, NEW = "as it was given", "as I like it, mostly"


@pytest.fixture
def alice(db: None) -> User:
    user = make_user("alice")
    user.set_password(OLD)
    user.save()
    return user


def logged_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def change(client: Client, *, old: str = OLD, new: str = NEW, again: str = NEW) -> tuple[int, str]:
    """The status of the answer, and the page that it leads to."""
    sent = {"old_password": old, "new_password1": new, "new_password2": again}
    answer = client.post("/password/", sent)
    followed = client.get(answer.url) if answer.status_code == 302 else answer  # type: ignore[attr-defined]
    return answer.status_code, followed.content.decode()


def test_who_knows_the_old_password_has_a_new_one(alice: User) -> None:
    here, elsewhere = logged_in(alice), logged_in(alice)
    status, page = change(here)
    alice.refresh_from_db()
    assert (status, alice.check_password(NEW)) == (302, True)
    assert "Your password has been changed." in page
    assert here.get("/").status_code == 200
    assert elsewhere.get("/").status_code == 302


def test_the_change_is_in_the_audit_trail_and_the_passwords_are_not(alice: User) -> None:
    change(logged_in(alice))
    entry = AuditEntry.objects.get(action="password.set", actor=alice)
    assert not {OLD, NEW} & set(map(str, vars(entry).values()))


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({"old": "a guess"}, "Your old password was entered incorrectly"),
        ({"again": "something else"}, "The two password fields"),
        ({"new": "password", "again": "password"}, "too common"),
        ({"new": "short", "again": "short"}, "too short"),
    ],
)
def test_a_wrong_or_weak_one_changes_nothing_and_is_told(alice: User, sent: dict[str, str], said: str) -> None:
    here = logged_in(alice)
    status, page = change(here, **sent)
    alice.refresh_from_db()
    assert (status, alice.check_password(OLD)) == (422, True)
    assert said in page
    assert not any(f'value="{value}"' in page for value in (OLD, NEW, *sent.values()))
