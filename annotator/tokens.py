"""REST tokens: opaque, stored as digests, shown once."""

from django.db import transaction
from django.utils import timezone
from knox.models import AuthToken

from annotator import audit
from annotator.models import User


@transaction.atomic
def issue(user: User) -> tuple[AuthToken, str]:
    """A new token's row, and the token itself, which is never seen again. Tokens that have run out go."""
    AuthToken.objects.filter(user=user, expiry__lte=timezone.now()).delete()
    row, token = AuthToken.objects.create(user)
    audit.record("token.issued", f"account {user.username}", token=audit.shown(row))
    return row, token
