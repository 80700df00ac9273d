"""Does a call that is sent twice with one key once (draft-ietf-httpapi-idempotency-key-header).

The key is claimed before the work begins, in a statement of which one of two simultaneous ones wins. The answer is
stored after the work, in its transaction where there is one. A process that dies in between leaves a claim that ends by
itself; the call is then done again.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import uuid4

from django.db.models import QuerySet

from annotator.db.statements import Statement
from annotator.models import IdempotentCall, User
from annotator.refusals import Refusal

KEPT = timedelta(hours=24)


class UsedForAnother(Refusal):
    """The account has sent another request with this key."""

    status = 422
    code = "idempotency_key_reused"


class StillRunning(Refusal):
    """The first request with this key has not been answered yet."""

    code = "idempotency_key_in_use"
    headers = {"Retry-After": "1"}


@dataclass(frozen=True)
class Request:
    """A request with its key. `longest` is how long it may run before it is taken for lost."""

    user: User
    key: str
    fingerprint: str
    longest: timedelta


@dataclass(frozen=True)
class Answer:
    """An answer as it is stored: the body is JSON, or empty."""

    status: int
    body: str
    location: str = ""


def claim(request: Request, *, now: datetime) -> IdempotentCall:
    """Claims the key; returns the call, whose `status` is set if it has been answered already.

    Raises:
        UsedForAnother: the key belongs to another request of the last 24 hours.
        StillRunning: the same request is being worked on.
    """
    attempt = uuid4()
    _CLAIM.run(
        user=request.user.pk,
        key=request.key,
        fingerprint=request.fingerprint,
        attempt=attempt,
        now=now,
        lost_at=now + request.longest,
        outdated=now - KEPT,
    )
    call = IdempotentCall.objects.filter(user=request.user, key=request.key).first()
    if call is None or (call.attempt != attempt and call.fingerprint == request.fingerprint and call.status is None):
        raise StillRunning("The first request with this Idempotency-Key has no answer yet. Send it again in a second.")
    if call.fingerprint != request.fingerprint:
        raise UsedForAnother(
            "This Idempotency-Key belongs to another request of yours. Make a new key for each new request."
        )
    return call


def store(call: IdempotentCall, answer: Answer) -> bool:
    """Stores what the call was answered, to be answered again; returns False if it was begun again meanwhile."""
    return bool(_attempts(call).update(status=answer.status, body=answer.body, location=answer.location))


def free(call: IdempotentCall) -> None:
    """Frees the key of a call that was refused or has failed: it may be sent again, also in other words."""
    _attempts(call).delete()


def sweep(*, now: datetime) -> int:
    """Deletes the calls of more than 24 hours ago; returns how many."""
    return IdempotentCall.objects.filter(begun_at__lte=now - KEPT).delete()[0]


def _attempts(call: IdempotentCall) -> QuerySet[IdempotentCall]:
    return IdempotentCall.objects.filter(pk=call.pk, attempt=call.attempt)


_CLAIM = Statement("""
INSERT INTO annotator_idempotentcall AS kept
    (user_id, key, fingerprint, attempt, begun_at, lost_at, status, body, location)
VALUES (%(user)s, %(key)s, %(fingerprint)s, %(attempt)s, %(now)s, %(lost_at)s, NULL, '', '')
ON CONFLICT (user_id, key) DO UPDATE SET
    fingerprint = excluded.fingerprint, attempt = excluded.attempt, begun_at = excluded.begun_at,
    lost_at = excluded.lost_at, status = NULL, body = '', location = ''
WHERE kept.begun_at <= %(outdated)s
    OR (kept.status IS NULL AND kept.lost_at <= %(now)s AND kept.fingerprint = excluded.fingerprint)
""")
