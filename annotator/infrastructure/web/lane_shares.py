"""Shares of what long requests wait for: no account takes all threads of a lane, or all places for large bodies.

The web server counts (annotator/launch/webserver/thread_pools.py); under another one nothing is counted.
"""

from django.http import HttpRequest

from annotator.infrastructure.refusals import Refusal

SHARE = "rewardloop.share"
"""In the environ: counts the request on an account's share and returns whether there was any left; None: no shares."""
GONE = "waitress.client_disconnected"
"""In the environ: returns whether the caller has closed the connection."""


class ShareUsedUp(Refusal):
    """The account has as many such requests under way as it may have."""

    status = 429
    code = "busy"
    headers = {"Retry-After": "1"}


def require_share(request: HttpRequest, account: int) -> None:
    """Counts the request on the account's share of the lane that it came by. Raises ShareUsedUp."""
    share = request.META.get(SHARE)
    if share is not None and not share(account):
        raise ShareUsedUp(
            "Your account has as many requests of this kind under way as it may have. Send this one again later."
        )
