"""How many calls of REST a token may make in a minute."""

import time
from collections.abc import Iterator
from threading import Thread

import pytest
from django.conf import LazySettings
from rest_framework.test import APIClient

from annotator.accounts import call_limits
from annotator.accounts.call_limits import CallLimits, TooManyCalls
from annotator.api import throttling
from annotator.background import heartbeats
from annotator.models import Token, User
from tests.conftest import Cast


@pytest.fixture(autouse=True)
def minute(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """The time of the test, ten seconds into a minute: changing it passes the time."""
    now = [time.time() // 60 * 60 + 10]
    monkeypatch.setattr(time, "time", lambda: now[0])
    monkeypatch.setattr(throttling, "_limits", CallLimits())
    forget()
    yield now
    forget()


def forget() -> None:
    for key in heartbeats.connection().scan_iter("rewardloop:calls:*"):
        heartbeats.connection().delete(key)


def allowed(limits: CallLimits, calls: int, caller: str = "token 1") -> int:
    done = 0
    for _ in range(calls):
        try:
            limits.note(caller)
            done += 1
        except TooManyCalls:
            pass
    return done


def client(user: User) -> APIClient:
    return APIClient(headers={"authorization": f"Token {Token.objects.create(user)[1]}"})


@pytest.mark.parametrize("most", [1, 7, 200, 1_000])
def test_a_caller_gets_as_many_calls_as_the_limit(settings: LazySettings, most: int) -> None:
    settings.API_CALLS_A_MINUTE = most
    assert allowed(CallLimits(), most + 50) == most


def test_all_processes_count_together(settings: LazySettings) -> None:
    settings.API_CALLS_A_MINUTE = 10
    processes = [CallLimits(), CallLimits(), CallLimits()]
    assert sum(allowed(process, 8) for process in processes) == 10


def test_callers_are_counted_apart(settings: LazySettings) -> None:
    settings.API_CALLS_A_MINUTE = 3
    limits = CallLimits()
    assert [allowed(limits, 5, caller) for caller in ("token 1", "token 2", "account 1")] == [3, 3, 3]


def test_the_next_minute_begins_anew(settings: LazySettings, minute: list[float]) -> None:
    settings.API_CALLS_A_MINUTE = 3
    limits = CallLimits()
    allowed(limits, 5)
    minute[0] += 49
    assert allowed(limits, 5) == 0
    minute[0] += 1
    assert allowed(limits, 5) == 3


def test_threads_share_a_count(settings: LazySettings) -> None:
    settings.API_CALLS_A_MINUTE = 1_000
    limits, done = CallLimits(), []
    threads = [Thread(target=lambda: done.append(allowed(limits, 300))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(done) == 1_000


def test_most_calls_do_not_ask_redis(settings: LazySettings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.API_CALLS_A_MINUTE = 60_000
    limits = CallLimits()
    limits.note("token 1")

    def asked() -> None:
        raise AssertionError

    monkeypatch.setattr(call_limits, "_client", asked)
    assert allowed(limits, 299) == 299


def test_without_redis_nobody_is_limited(settings: LazySettings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.API_CALLS_A_MINUTE, settings.REDIS_URL = 3, "redis://127.0.0.1:1/0"
    monkeypatch.setattr(call_limits, "_client", call_limits._made.__wrapped__)
    assert allowed(CallLimits(), 10) == 10


def test_redis_is_asked_again_after_a_pause(settings: LazySettings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.API_CALLS_A_MINUTE = 3
    limits, client_of = CallLimits(), call_limits._client

    def away() -> None:
        raise OSError

    monkeypatch.setattr(call_limits, "_client", away)
    assert allowed(limits, 5) == 5
    monkeypatch.setattr(call_limits, "_client", client_of)
    assert allowed(limits, 5) == 5
    limits._away_until = time.monotonic()
    assert allowed(limits, 5) == 3


def test_the_headers_say_what_is_left(cast: Cast, settings: LazySettings) -> None:
    settings.API_CALLS_A_MINUTE = 2
    alice = client(cast.alice)
    first, second, third = (alice.get("/api/v1/me/") for _ in range(3))
    assert [answer.status_code for answer in (first, second, third)] == [200, 200, 429]
    assert first.headers["RateLimit-Policy"] == '"calls";q=2;w=60'
    assert [answer.headers["RateLimit"] for answer in (first, second)] == ['"calls";r=1;t=50', '"calls";r=0;t=50']
    assert (third.headers["Retry-After"], third.headers["RateLimit"]) == ("50", '"calls";r=0;t=50')
    assert (third.json()["code"], set(third.json())) == ("too_many_calls", {"detail", "code", "errors"})


def test_each_token_has_its_own_limit(cast: Cast, settings: LazySettings) -> None:
    settings.API_CALLS_A_MINUTE = 1
    assert [client(cast.alice).get("/api/v1/me/").status_code for _ in range(3)] == [200, 200, 200]


def test_a_session_counts_for_its_account(cast: Cast, settings: LazySettings) -> None:
    settings.API_CALLS_A_MINUTE = 1
    pages = APIClient()
    pages.force_login(cast.alice)
    assert [pages.get("/api/v1/me/").status_code for _ in range(2)] == [200, 429]


def test_probes_are_not_counted(settings: LazySettings, db: None) -> None:
    settings.API_CALLS_A_MINUTE = 1
    assert "RateLimit" not in APIClient().get("/api/v1/health/live/").headers


def test_without_a_limit_nothing_is_counted(cast: Cast, settings: LazySettings) -> None:
    settings.API_CALLS_A_MINUTE = 0
    assert "RateLimit" not in client(cast.alice).get("/api/v1/me/").headers
