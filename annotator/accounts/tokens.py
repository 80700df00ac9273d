"""Issues and ends REST tokens, which are opaque, stored as digests, and shown once."""

from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from annotator.infrastructure import audit
from annotator.infrastructure.db.statements import Statement
from annotator.infrastructure.refusals import Refusal
from annotator.models import Token, User, every_scope

USE_NOTED_EVERY = timedelta(hours=1)


@transaction.atomic
def issue(
    user: User, *, name: str = "", scopes: list[str] | None = None, days: int | None = None, by: Token | None = None
) -> tuple[Token, str]:
    """Makes a token; returns its row and the token itself, which is never shown again. Expired tokens are deleted.

    Without `scopes` it has all of them, without `days` it lasts TOKEN_DAYS. A token that is requested with another one
    (`by`) has no scope that the other lacks, and ends no later.

    Raises:
        Refusal: it would have no scope, last too long, or exceed the scopes of `by`.
    """
    wanted = every_scope() if scopes is None else [scope for scope in every_scope() if scope in scopes]
    most = settings.TOKEN_DAYS_MOST
    lifetime = settings.TOKEN_DAYS if days is None else days
    if not wanted or set(scopes or ()) - set(wanted):
        raise Refusal(
            _("Name at least one scope: %(scopes)s.") % {"scopes": ", ".join(every_scope())},
            code="unusable_token",
            status=400,
        )
    if not 1 <= lifetime <= most:
        raise Refusal(
            _("A token lasts at least one day and at most %(days)d days.") % {"days": most},
            code="unusable_token",
            status=400,
        )
    expiry = timedelta(days=lifetime)
    # A stolen token must not make one that does more, or outlives it.
    if by is not None:
        if beyond := set(wanted) - set(by.scopes):
            raise Refusal(
                f"The token that you sent has no scope {' or '.join(sorted(beyond))} to pass on.",
                code="unusable_token",
                status=400,
            )
        expiry = min(expiry, by.expiry - timezone.now()) if by.expiry else expiry
    Token.objects.filter(user=user, expiry__lte=timezone.now()).delete()
    row, token = Token.objects.create(user, expiry=expiry, name=name, scopes=wanted)
    details = {"token": audit.shown(row), "name": name, "scopes": list(wanted), "expiry": row.expiry.isoformat()}
    audit.record("token.issued", f"account {user.username}", **details)
    return row, token


def living(user: User) -> QuerySet[Token]:
    """Returns the account's tokens that have not expired."""
    lasting = Q(expiry__isnull=True) | Q(expiry__gt=timezone.now())
    tokens: QuerySet[Token] = Token.objects.filter(lasting, user=user)
    return tokens


@transaction.atomic
def end(token: Token) -> None:
    """Ends the token: it gives access to nothing from now on."""
    audit.record("token.ended", f"account {token.user.username}", token=audit.shown(token), name=token.name)
    token.delete()


@transaction.atomic
def end_all(user: User, *, reason: str) -> None:
    """Ends all tokens of the account."""
    ended = list(living(user))
    Token.objects.filter(user=user).delete()
    if ended:
        audit.record("token.ended", f"account {user.username}", tokens=list(map(audit.shown, ended)), because=reason)


def note_use(token: Token) -> None:
    """Stores when the token was last used, at most once an hour, so that most calls write nothing."""
    now = timezone.now()
    if token.last_used_at is None or now - token.last_used_at >= USE_NOTED_EVERY:
        _NOTE_USE.run(id=token.pk, now=now, before=now - USE_NOTED_EVERY)


# Conditional: of many calls at one moment, which have all read the same old time, one writes.
_NOTE_USE = Statement("""
UPDATE annotator_token SET last_used_at = %(now)s
WHERE id = %(id)s AND (last_used_at IS NULL OR last_used_at <= %(before)s)
""")
