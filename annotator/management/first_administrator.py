"""The first administrator of an installation without the demo."""

import secrets
from dataclasses import dataclass

from django.db import transaction

from annotator.infrastructure import audit
from annotator.infrastructure.refusals import Refusal
from annotator.models import User

NAME = "admin"


@dataclass(frozen=True)
class Made:
    """An account with its password, which is stored as a hash only."""

    username: str
    password: str


@transaction.atomic
def make_first() -> Made | None:
    """Makes the superuser `admin` with a random password that the first login has to change.

    Returns None where a superuser can log in already.

    Raises:
        Refusal: `admin` is somebody's account without these rights.
    """
    if User.objects.filter(is_superuser=True, is_active=True).exists():
        return None
    password = secrets.token_urlsafe(15)
    user, created = User.objects.get_or_create(
        username=NAME, defaults={"is_staff": True, "is_superuser": True, "must_change_password": True}
    )
    # Refused rather than promoted: whoever chose the name `admin` would become superuser.
    if not created:
        raise Refusal(f"There is no superuser, and {NAME!r} is not one. Create one with `manage.py createsuperuser`.")
    audit.record("account.created", f"account {NAME}", is_superuser=True)
    user.set_password(password)
    user.save(update_fields=["password"])
    return Made(NAME, password)
