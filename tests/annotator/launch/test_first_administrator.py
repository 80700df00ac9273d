"""The first administrator of an installation without the demo."""

from io import StringIO

import pytest
from django.contrib.auth import authenticate
from django.core.management import CommandError, call_command
from django.http import HttpRequest

from annotator.models import AuditEntry, User
from tests.builders import make_user


def said() -> str:
    out = StringIO()
    call_command("first_administrator", stdout=out)
    return out.getvalue()


@pytest.mark.django_db
def test_it_is_made_once_with_a_password_that_is_printed_and_has_to_be_changed() -> None:
    first = said()
    password = first.splitlines()[0].rpartition(" ")[2]
    admin = authenticate(HttpRequest(), username="admin", password=password)
    assert isinstance(admin, User)
    assert (admin.is_superuser, admin.is_staff, admin.must_change_password) == (True, True, True)
    assert password not in str([*User.objects.values(), *AuditEntry.objects.values()])
    assert said() == ""


@pytest.mark.django_db
def test_none_is_made_beside_another_superuser() -> None:
    make_user("root", is_superuser=True)
    assert said() == ""
    assert User.objects.count() == 1


@pytest.mark.django_db
def test_somebody_else_s_account_does_not_become_one() -> None:
    make_user("admin")
    with pytest.raises(CommandError, match="createsuperuser"):
        said()
    assert not User.objects.get().is_superuser
