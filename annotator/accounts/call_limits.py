"""Limits how many REST calls a token, or an account without one, makes in a minute.

All web processes count together, in Redis. A process asks Redis for many calls at once, so that most calls ask nobody;
a large limit is therefore held to within a few per cent. While Redis is away, nobody is limited: no call depends on it.
"""

import logging
import math
import time
from dataclasses import dataclass
from functools import cache
from threading import Lock

import redis
from django.conf import settings
from redis.backoff import NoBackoff
from redis.retry import Retry

from annotator.refusals import Refusal

WINDOW_SECONDS = 60
PORTIONS = 200
"""A process asks for this part of the limit at once."""
PATIENCE_SECONDS = 0.1
"""The longest that a call waits for Redis."""
PAUSE_SECONDS = 10.0
"""After Redis has not answered, calls are let through for so long without asking it."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Standing:
    """What a caller has left of the minute, and the seconds until the next one begins."""

    most: int
    left: int
    seconds: int


class TooManyCalls(Refusal):
    """The token or account has made all calls of this minute."""

    status = 429
    code = "too_many_calls"

    def __init__(self, standing: Standing) -> None:
        most, seconds = standing.most, standing.seconds
        super().__init__(f"You may make {most:,} calls a minute. Wait {seconds} s before you make the next one.")
        self.standing, self.headers = standing, {"Retry-After": str(seconds)}


@dataclass
class Grant:
    """What is left of a caller's minute: `here` in this process's portions, `elsewhere` for any process to ask for."""

    here: int = 0
    elsewhere: int = 1


class CallLimits:
    """The calls of one process in the current minute, by caller."""

    def __init__(self) -> None:
        self._grants: dict[str, Grant] = {}
        self._minute, self._away_until, self._lock = -1, -math.inf, Lock()

    def note(self, caller: str) -> Standing | None:
        """Counts a call; returns what the caller has left, or None if nobody counts.

        Raises:
            TooManyCalls: the limit is reached.
        """
        most, now = settings.API_CALLS_A_MINUTE, time.time()
        if not most or time.monotonic() < self._away_until:
            return None
        minute, seconds = int(now // WINDOW_SECONDS), math.ceil(WINDOW_SECONDS - now % WINDOW_SECONDS)
        left = self._taken(caller, minute)
        if left is None:
            left = self._asked(caller, minute, most)
        if left is None:
            return None
        if left < 0:
            raise TooManyCalls(Standing(most, 0, seconds))
        return Standing(most, left, seconds)

    def _taken(self, caller: str, minute: int) -> int | None:
        """Takes a call from what the process has, and returns what is left: -1 if the call may not be made.

        Returns None if Redis has to be asked.
        """
        with self._lock:
            if minute != self._minute:
                self._grants, self._minute = {}, minute
            grant = self._grants.setdefault(caller, Grant())
            if grant.here > 0:
                grant.here -= 1
                return grant.here + grant.elsewhere
            # If nothing is left anywhere, the rest of the minute costs no question either.
            return None if grant.elsewhere else -1

    def _asked(self, caller: str, minute: int, most: int) -> int | None:
        """Asks Redis for a portion and takes a call from it, as `_taken` does; returns None if Redis is away."""
        portion = max(1, most // PORTIONS)
        try:
            pipeline = _client().pipeline(transaction=False)
            pipeline.incrby(key := f"rewardloop:calls:{caller}:{minute}", portion)
            pipeline.expire(key, 2 * WINDOW_SECONDS)
            counted = int(pipeline.execute()[0])
        except (redis.RedisError, OSError) as away:
            self._away_until = time.monotonic() + PAUSE_SECONDS
            _log.warning("calls of REST are not limited for %d s: %s", PAUSE_SECONDS, away)
            return None
        granted = max(0, min(portion, most - (counted - portion)))
        with self._lock:
            grant = self._grants.setdefault(caller, Grant())
            grant.elsewhere = max(0, most - counted)
            if not granted:
                return -1
            grant.here += granted - 1
            return grant.here + grant.elsewhere


_connecting = Lock()


def _client() -> "redis.Redis":
    with _connecting:
        return _made()


@cache
def _made() -> "redis.Redis":
    patience = dict.fromkeys(("socket_timeout", "socket_connect_timeout"), PATIENCE_SECONDS)
    return redis.Redis.from_url(settings.REDIS_URL, retry=Retry(NoBackoff(), 0), **patience)
