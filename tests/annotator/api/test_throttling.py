"""How many calls of REST a token may make in a minute."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.conf import LazySettings
from rest_framework.test import APIClient

from annotator.api import throttling
from annotator.infrastructure.background import redis_client
from annotator.infrastructure.refusals import Refusal
from annotator.models import Token, User
from tests.conftest import Cast


@pytest.fixture(autouse=True)
def minute(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """The time of the test, ten seconds into a minute: changing it passes the time."""
    now = [time.time() // 60 * 60 + 10]
    monkeypatch.setattr(time, "time", lambda: now[0])
    monkeypatch.setattr(throttling, "counter", throttling.CallCounter())
    forget()
    yield now
    forget()


def forget() -> None:
    for key in redis_client.connection().scan_iter("rewardloop:calls:*"):
        redis_client.connection().delete(key)


def allowed(calls: int, caller: str = "token 1", counter: throttling.CallCounter | None = None) -> int:
    done = 0
    for _ in range(calls):
        try:
            (counter or throttling.counter).note(caller)
            done += 1
        except Refusal:
            pass
    return done


def client(user: User) -> APIClient:
    return APIClient(headers={"authorization": f"Token {Token.objects.create(user)[1]}"})


@pytest.mark.parametrize("most", [1, 7, 200])
def test_a_caller_gets_as_many_calls_as_the_limit(settings: LazySettings, most: int) -> None:
    settings.API_CALLS_A_MINUTE = most
    assert allowed(most + 50) == most


def test_callers_are_counted_apart(settings: LazySettings) -> None:
    settings.API_CALLS_A_MINUTE = 3
    assert [allowed(5, caller) for caller in ("token 1", "token 2", "account 1")] == [3, 3, 3]


def test_the_next_minute_begins_anew(settings: LazySettings, minute: list[float]) -> None:
    settings.API_CALLS_A_MINUTE = 3
    allowed(5)
    minute[0] += 49
    assert allowed(5) == 0
    minute[0] += 1
    assert allowed(5) == 3


def test_threads_share_a_count(settings: LazySettings) -> None:
    settings.API_CALLS_A_MINUTE = 1_000
    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(allowed, [300] * 6)) == 1_000
    assert [redis_client.connection().ttl(key) for key in redis_client.connection().scan_iter("*calls:token 1:*")] > [
        60
    ]


def test_processes_share_a_count_to_a_hundredth(settings: LazySettings) -> None:
    settings.API_CALLS_A_MINUTE = 1_000
    one, other = throttling.CallCounter(), throttling.CallCounter()
    done = sum(allowed(7, counter=counter) for counter in [one, other] * 100)
    assert 1_000 <= done <= 1_010


def test_a_process_that_made_few_calls_learns_of_the_others(
    settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.API_CALLS_A_MINUTE = 1_000
    one, other = throttling.CallCounter(), throttling.CallCounter()
    assert allowed(2, counter=one) == 2
    assert allowed(2_000, counter=other) in range(990, 1_001)
    monkeypatch.setattr(throttling, "PORTION_SECONDS", 0)  # ten seconds have passed
    assert allowed(10, counter=one) <= 1


def test_redis_is_asked_for_few_calls(settings: LazySettings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.API_CALLS_A_MINUTE, asked = 60_000, []

    def client(*wish: float, **retries: int) -> object:
        asked.append(wish)
        return redis_client.connection(*wish, **retries)

    monkeypatch.setattr(throttling, "connection", client)
    assert allowed(1_000) == 1_000
    assert len(asked) <= 5


def test_without_redis_nobody_is_limited(settings: LazySettings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.API_CALLS_A_MINUTE, settings.REDIS_URL = 3, "redis://127.0.0.1:1/0"
    monkeypatch.setattr(throttling, "connection", redis_client._client.__wrapped__)
    assert allowed(10) == 10


def test_redis_is_asked_again_after_a_pause(settings: LazySettings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.API_CALLS_A_MINUTE = 3

    def away(*_: object, **_patience: object) -> None:
        raise OSError

    monkeypatch.setattr(throttling, "connection", away)
    assert allowed(5) == 5
    monkeypatch.setattr(throttling, "connection", redis_client.connection)
    assert allowed(5) == 5
    monkeypatch.setattr(throttling.counter, "_away_until", time.monotonic())
    assert allowed(5) == 3


def test_a_call_too_many_is_told_when_the_next_may_come(cast: Cast, settings: LazySettings) -> None:
    settings.API_CALLS_A_MINUTE = 2
    alice = client(cast.alice)
    first, second, third = (alice.get("/api/v1/me/") for _ in range(3))
    assert [answer.status_code for answer in (first, second, third)] == [200, 200, 429]
    assert third.headers["Retry-After"] == "50"
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
    assert {APIClient().get("/api/v1/health/live/").status_code for _ in range(3)} == {200}


def test_without_a_limit_nothing_is_counted(cast: Cast, settings: LazySettings) -> None:
    settings.API_CALLS_A_MINUTE = 0
    alice = client(cast.alice)
    assert {alice.get("/api/v1/me/").status_code for _ in range(3)} == {200}
    assert list(redis_client.connection().scan_iter("rewardloop:calls:*")) == []
