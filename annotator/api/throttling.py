"""Limits how many REST calls a token, or an account without one, makes in a minute.

All web processes count together, in Redis. While Redis is away, nobody is limited: no call depends on it.
"""

import logging
import math
import time
from typing import TYPE_CHECKING

import redis
from django.conf import settings
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from annotator.infrastructure.background.redis_client import connection
from annotator.infrastructure.refusals import Refusal
from annotator.models import Token, User

if TYPE_CHECKING:  # the framework's views import this module, as the settings name it
    from rest_framework.views import APIView

WINDOW_SECONDS = 60
PATIENCE_SECONDS = 0.1
"""The longest wait for each step of asking Redis, which every call of REST does."""
PAUSE_SECONDS = 10.0
"""After Redis has not answered, calls are let through for so long without asking it."""
_log = logging.getLogger(__name__)
_away_until = -math.inf


class ByToken(BaseThrottle):
    """Counts calls by token, and by account for a session. Who has not logged in has the limits on logins alone."""

    def allow_request(self, request: Request, view: "APIView") -> bool:
        """Returns True. Raises Refusal if the caller has made all calls of this minute."""
        if isinstance(request.auth, Token):
            note(f"token {request.auth.pk}")
        elif isinstance(request.user, User):
            note(f"account {request.user.pk}")
        return True


def note(caller: str) -> None:
    """Counts a call. Raises Refusal if the caller has made all calls of this minute."""
    global _away_until
    most = settings.API_CALLS_A_MINUTE
    if not most or time.monotonic() < _away_until:
        return
    minute, passed = divmod(time.time(), WINDOW_SECONDS)
    try:
        with connection(PATIENCE_SECONDS, retries=0).pipeline(transaction=False) as pipeline:
            pipeline.incr(key := f"rewardloop:calls:{caller}:{minute:.0f}")
            pipeline.expire(key, 2 * WINDOW_SECONDS)
            counted, _ = pipeline.execute()
    except (redis.RedisError, OSError) as away:
        _away_until = time.monotonic() + PAUSE_SECONDS
        _log.warning("calls of REST are not limited for %d s: %s", PAUSE_SECONDS, away)
        return
    if counted > most:
        seconds = math.ceil(WINDOW_SECONDS - passed)
        text = f"You may make {most:,} calls a minute. Wait {seconds} s before you make the next one."
        refusal = Refusal(text, code="too_many_calls", status=429)
        refusal.headers = {"Retry-After": str(seconds)}
        raise refusal
