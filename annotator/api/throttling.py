"""Limits how many REST calls a token, or an account without one, makes in a minute.

All web processes count together, in Redis. Each adds its calls in portions, since a trip to Redis at every call would
make the short ones slower by a tenth. While Redis is away, nobody is limited: no call depends on it.
"""

import logging
import math
import time
from dataclasses import dataclass
from threading import Lock
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
PORTION = 0.01
"""The share of the calls that are left which a process lets through before it adds them to the common count."""
PORTION_SECONDS = 10.0
"""After so long, a process adds its calls however few they are."""
PATIENCE_SECONDS = 0.1
"""The longest wait for each step of asking Redis."""
PAUSE_SECONDS = 10.0
"""After Redis has not answered, calls are let through for so long without asking it."""
_log = logging.getLogger(__name__)


class ByToken(BaseThrottle):
    """Counts calls by token, and by account for a session. Who has not logged in has the limits on logins alone."""

    def allow_request(self, request: Request, view: "APIView") -> bool:
        """Returns True. Raises Refusal if the caller has made all calls of this minute."""
        if isinstance(request.auth, Token):
            counter.note(f"token {request.auth.pk}")
        elif isinstance(request.user, User):
            counter.note(f"account {request.user.pk}")
        return True


@dataclass
class _Calls:
    """A caller's calls of this minute: those of all processes when Redis was last asked, and those here since."""

    counted: int = 0
    since: int = 0
    asked: float = -math.inf


class CallCounter:
    """The calls of this minute by caller, as one process knows them."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._minute = -1
        self._calls: dict[str, _Calls] = {}
        self._away_until = -math.inf

    def note(self, caller: str) -> None:
        """Counts a call. Raises Refusal if the caller has made all calls of this minute."""
        most = settings.API_CALLS_A_MINUTE
        if not most or time.monotonic() < self._away_until:
            return
        minute, passed = divmod(time.time(), WINDOW_SECONDS)
        if self._counted(caller, int(minute), most) > most:
            seconds = math.ceil(WINDOW_SECONDS - passed)
            text = f"You may make {most:,} calls a minute. Wait {seconds} s before you make the next one."
            refusal = Refusal(text, code="too_many_calls", status=429)
            refusal.headers = {"Retry-After": str(seconds)}
            raise refusal

    def _counted(self, caller: str, minute: int, most: int) -> int:
        """Counts a call and returns how many the caller has made, as far as this process knows."""
        now = time.monotonic()
        with self._lock:
            if minute != self._minute:
                self._minute, self._calls = minute, {}
            calls = self._calls.setdefault(caller, _Calls())
            calls.since += 1
            known, left = calls.counted + calls.since, most - calls.counted
            if left <= 0 or (calls.since <= left * PORTION and now < calls.asked + PORTION_SECONDS):
                return known
            added, calls.since, calls.asked = calls.since, 0, now
        counted = self._add(f"rewardloop:calls:{caller}:{minute}", added)
        with self._lock:
            calls.counted = max(calls.counted, counted)
        return counted

    def _add(self, key: str, calls: int) -> int:
        """Adds to the common count and returns it; returns 0 while Redis is away."""
        try:
            with connection(PATIENCE_SECONDS, retries=0).pipeline(transaction=False) as pipeline:
                pipeline.incrby(key, calls)
                pipeline.expire(key, 2 * WINDOW_SECONDS)
                counted, _ = pipeline.execute()
        except (redis.RedisError, OSError) as away:
            self._away_until = time.monotonic() + PAUSE_SECONDS
            _log.warning("calls of REST are not limited for %d s: %s", PAUSE_SECONDS, away)
            return 0
        return int(counted)


counter = CallCounter()
