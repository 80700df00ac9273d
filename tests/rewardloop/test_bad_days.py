"""What the client does when the server is away, overloaded, or not Rewardloop at all."""

import json

import httpx
import pytest

import rewardloop
from rewardloop import (
    Client,
    Conflict,
    Invalid,
    NotFound,
    NotSetUp,
    Refused,
    RewardloopError,
    ServerAway,
    ServerFault,
    TookTooLong,
    TooManyRequests,
    Unauthorized,
    Unavailable,
    UnexpectedAnswer,
    WorkFailed,
)
from tests.rewardloop.scripted import URL, Answer, BreaksOff, Script, refusal

RUN = {"id": 3, "state": "queued", "something_new": {"a": 1}}


def me(_request: httpx.Request) -> httpx.Response:
    return httpx.Response(200, json={"username": "alice", "memberships": []})


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that the client has waited; no time passes."""
    waited: list[float] = []
    monkeypatch.setattr("rewardloop.connection.sleep", waited.append)
    monkeypatch.setattr("random.uniform", lambda _low, _high: 1.0)
    return waited


def client(*answers: Answer, **options: int) -> tuple[Client, Script]:
    script = Script(list(answers))
    return Client(URL, "secret", transport=httpx.MockTransport(script), **options), script


# Further tries -----------------------------------------------------------------------------------------------
def test_a_server_that_asks_for_patience_gets_it(pauses: list[float]) -> None:
    asker, script = client(refusal(503, Retry_After="7"), refusal(429, Retry_After="2"), me)
    assert asker.me().username == "alice"
    assert (pauses, len(script.requests)) == ([7.0, 2.0], 3)


def test_a_lost_connection_is_tried_again_with_longer_pauses(pauses: list[float]) -> None:
    asker, _ = client(httpx.ReadError("reset"), httpx.ConnectError("refused"), httpx.Response(502), me)
    assert asker.me().username == "alice"
    assert pauses == [0.5, 1.0, 2.0]


def test_tries_come_to_an_end(pauses: list[float]) -> None:
    asker, script = client(httpx.ReadError("reset"), retries=2)
    with pytest.raises(ServerAway, match="does not answer"):
        asker.me()
    assert (len(pauses), len(script.requests)) == (2, 3)


def test_what_may_have_arrived_is_not_sent_twice(pauses: list[float]) -> None:
    asker, script = client(httpx.ReadError("reset"))
    with pytest.raises(ServerAway):
        asker.skip(1, "other")
    assert (pauses, len(script.requests)) == ([], 1)


def test_what_makes_something_is_sent_again_under_the_same_id(pauses: list[float]) -> None:
    asker, script = client(httpx.ReadError("reset"), httpx.Response(202, json={"number": 1, "state": "waiting"}))
    assert asker.create_release("talk").number == 1
    assert len({json.loads(request.content)["request_id"] for request in script.requests}) == 1
    asker.create_release("talk")
    assert len({json.loads(request.content)["request_id"] for request in script.requests}) == 2


def test_what_has_not_left_is_sent_again(pauses: list[float]) -> None:
    asker, script = client(httpx.ConnectError("refused"), httpx.Response(204))
    asker.skip(1, "other")
    assert len(script.requests) == 2


def test_a_missing_worker_is_said_at_once(pauses: list[float]) -> None:
    asker, _ = client(refusal(503, "No worker listens.", "no_worker"))
    with pytest.raises(Unavailable, match="No worker listens") as refused:
        asker.me()
    assert (refused.value.code, pauses) == ("no_worker", [])


def test_nobody_waits_for_an_hour(pauses: list[float]) -> None:
    asker, _ = client(refusal(429, Retry_After="3600"))
    with pytest.raises(TooManyRequests) as refused:
        asker.me()
    assert (refused.value.retry_after, pauses) == (3600.0, [])


def test_an_upload_is_sent_again_from_its_beginning(pauses: list[float]) -> None:
    job = {"id": 1, "state": "done", "created": 1}
    asker, script = client(refusal(503, Retry_After="1"), httpx.Response(202, json=job))
    assert asker.import_tasks("talk", ({"prompt": "ü"} for _ in range(1))).created == 1
    assert b'{"prompt": "\xc3\xbc"}\n' in script.bodies[0]
    assert script.bodies[0].split(b"\r\n")[3:5] == script.bodies[1].split(b"\r\n")[3:5]
    assert script.requests[0].headers["Host"] == "rate.example"
    assert int(script.requests[0].headers["Content-Length"]) == len(script.bodies[0])


# Answers that are none ---------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (refusal(400), Invalid),
        (refusal(413), Invalid),
        (refusal(401), Unauthorized),
        (refusal(403), rewardloop.Forbidden),
        (refusal(404), NotFound),
        (refusal(410), NotFound),
        (refusal(409), Conflict),
        (refusal(429), TooManyRequests),
        (refusal(500), ServerFault),
        (refusal(507), Unavailable),
        (httpx.Response(404, text="<html>"), UnexpectedAnswer),
        (httpx.Response(200, text="<html>log in to the Wi-Fi"), UnexpectedAnswer),
        (httpx.Response(200, json=["no", "account"]), UnexpectedAnswer),
        (httpx.Response(200, json={"name": "alice"}), UnexpectedAnswer),
        (httpx.Response(301, headers={"Location": "https://other.example/"}), UnexpectedAnswer),
        (httpx.Response(503, text="maintenance"), ServerAway),
    ],
)
def test_each_kind_of_refusal_has_a_class(answer: httpx.Response, kind: type[RewardloopError]) -> None:
    asker, _ = client(answer, retries=0)
    with pytest.raises(RewardloopError) as raised:
        asker.me()
    assert type(raised.value) is kind
    if isinstance(raised.value, Refused):
        assert (raised.value.detail, raised.value.errors) == ("No.", {"name": ["No."]})


def test_rows_that_break_off_are_no_shorter_file() -> None:
    cut = httpx.Response(200, stream=BreaksOff(b'{"a": 1}\n{"a": '))
    asker, _ = client(cut)
    rows = asker.rows("talk")
    assert next(rows) == {"a": 1}
    with pytest.raises(ServerAway):
        next(rows)
    asker, _ = client(httpx.Response(200, content=b'{"a": 1}\n{"a": '))
    with pytest.raises(ServerAway, match="broke off"):
        list(asker.rows("talk"))


def test_a_newer_server_may_say_more_and_an_older_one_less() -> None:
    asker, _ = client(httpx.Response(200, json=RUN))
    run = asker.run(3)
    assert (run.id, run.reward_model, run.raw["something_new"]) == (3, None, {"a": 1})


# Where the token goes ----------------------------------------------------------------------------------------
def test_the_next_page_is_read_from_the_same_server() -> None:
    first = {"next": "http://internal.host/api/v1/projects/?cursor=a%2Bb%3D", "results": [{"slug": "a", "name": "A"}]}
    asker, script = client(httpx.Response(200, json=first), httpx.Response(200, json={"next": None, "results": []}))
    assert [project.slug for project in asker.projects()] == ["a"]
    assert str(script.requests[1].url) == f"{URL}/api/v1/projects/?cursor=a%2Bb%3D"


def test_pages_are_read_when_they_are_needed() -> None:
    page = {"next": f"{URL}/api/v1/projects/?cursor=x", "results": [{"slug": "a", "name": "A"}]}
    asker, script = client(httpx.Response(200, json=page))
    found = asker.projects()
    assert len(script.requests) == 0
    assert [next(found).slug, next(found).slug] == ["a", "a"]
    assert len(script.requests) == 2


@pytest.mark.parametrize("page", [{"results": {"a": 1}}, {"results": None}, {"count": 0}])
def test_a_page_without_a_list_is_none_of_ours(page: dict[str, object]) -> None:
    asker, _ = client(httpx.Response(200, json=page))
    with pytest.raises(UnexpectedAnswer, match="answered no list"):
        list(asker.projects())


def test_a_redirect_is_not_followed_with_the_token() -> None:
    asker, script = client(httpx.Response(302, headers={"Location": "https://evil.example/"}))
    with pytest.raises(UnexpectedAnswer, match="use that as the URL"):
        asker.me()
    assert len(script.requests) == 1


def test_a_project_is_one_part_of_an_address() -> None:
    asker, script = client(refusal(404))
    with pytest.raises(NotFound):
        asker.project("../../admin?x=#")
    assert script.requests[0].url.raw_path == b"/api/v1/projects/..%2F..%2Fadmin%3Fx%3D%23/"


@pytest.mark.parametrize("url", [URL, f"{URL}/", f"{URL}/api/v1", f"{URL}/api/v1/"])
def test_the_address_may_be_written_in_several_ways(url: str) -> None:
    script = Script([me])
    Client(url, "t", transport=httpx.MockTransport(script)).me()
    assert str(script.requests[0].url) == f"{URL}/api/v1/me/"
    assert script.requests[0].headers["User-Agent"] == f"rewardloop/{rewardloop.VERSION}"


@pytest.mark.parametrize("url", ["", "rate.example", "ftp://rate.example", "http://", "https://rate.example:port"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(NotSetUp):
        Client(url, "t")


def test_a_token_with_a_line_feed_is_refused() -> None:
    with pytest.raises(NotSetUp, match="token"):
        Client(URL, "abc\n")


def test_the_environment_says_where_and_who(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REWARDLOOP_URL", URL)
    monkeypatch.setenv("REWARDLOOP_TOKEN", "ours")
    assert (Client().connection.url, Client().connection.token) == (URL, "ours")
    assert Client(f"{URL}/").connection.token == "ours"
    assert Client("https://other.example").connection.token == ""


# Work --------------------------------------------------------------------------------------------------------
def test_items_are_scored_in_batches_by_one_model(pauses: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rewardloop.scoring.MOST_ITEMS", 2)
    one, two = ({"reward": reward, "scores": {}, "new": 1} for reward in (1.0, 2.0))
    asker, script = client(
        httpx.Response(202, json={"id": 9, "model": 7, "state": "queued", "results": None}),
        httpx.Response(200, json={"id": 9, "model": 7, "state": "done", "results": [one, two]}),
        httpx.Response(200, json={"model": 7, "results": [one]}),
    )
    done = asker.score([{"conversation": [], "response": "x"}] * 3, project="talk")
    assert [score.reward for score in done.results or ()] == [1.0, 2.0, 1.0]
    assert [request.url.path for request in script.requests][1] == "/api/v1/scoring-jobs/9/"
    assert b'"model": 7' in script.bodies[2]


def test_a_failed_scoring_job_is_raised(pauses: list[float]) -> None:
    failed = {"id": 9, "model": 7, "state": "failed", "results": None, "error": "Out of memory."}
    asker, _ = client(httpx.Response(202, json=failed))
    with pytest.raises(WorkFailed, match="Out of memory"):
        asker.score([{"conversation": [], "response": "x"}])


def test_waiting_for_a_run_ends_with_it_or_with_ones_patience(pauses: list[float]) -> None:
    states = [httpx.Response(200, json={**RUN, "state": state}) for state in ("queued", "training", "promoted")]
    asker, _ = client(*states)
    heard: list[str] = []
    assert asker.wait_for_run(3, on_progress=lambda run: heard.append(run.state)).state == "promoted"
    assert heard == ["queued", "training", "promoted"]
    asker, _ = client(httpx.Response(200, json=RUN))
    with pytest.raises(TookTooLong):
        asker.wait_for_run(3, timeout=0.0)


def test_without_pandas_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr("rewardloop.client.import_module", missing)
    asker, _ = client(httpx.Response(200, content=b'{"a": 1}\n'))
    for call, package in ((asker.to_pandas, "pandas"), (asker.to_datasets, "datasets")):
        with pytest.raises(NotSetUp, match=f"pip install {package}"):
            call("talk")
