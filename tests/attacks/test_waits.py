"""What waits for the score worker never takes the pages' threads."""

import json
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event

import pytest
from django.conf import settings

from annotator.accounts import tokens
from annotator.infrastructure.background import heartbeats
from annotator.launch.webserver.thread_pools import lanes
from annotator.models import Project
from rewards.api.scores import SCORE_WAIT_SECONDS
from tests.conftest import Cast
from tests.rewards.scored import make_model
from tests.web import Web, web

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
PROCESSES, THREADS = 2, 4
PAGE_SECONDS = 4
"""For a page on a busy machine; what waits does so for minutes."""


def held(name: str) -> int:
    """How many requests one process takes into the lane at once."""
    return next(lane.threads + lane.waiting for lane in lanes(THREADS) if lane.name == name)


@pytest.fixture
def server(tmp_path: Path, django_db_setup: None) -> Iterator[Web]:
    """Warm, and with a score worker that beats and never answers."""
    with web(tmp_path) as made, beating("score@nowhere"):
        for _ in range(2 * PROCESSES):
            made.seconds_for("/login/", timeout=30)
        yield made


@contextmanager
def beating(name: str) -> Iterator[None]:
    """Beats as workers do for as long as it lasts: on a busy machine these tests outlive a single beat."""
    ended = Event()

    def beat() -> None:
        while not ended.is_set():
            heartbeats.beat(name, ["score"])
            ended.wait(settings.WORKER_HEARTBEAT_SECONDS)

    heartbeats.beat(name, ["score"])
    with ThreadPoolExecutor(1) as heart:
        heart.submit(beat)
        try:
            yield
        finally:
            ended.set()
    heartbeats.forget(name)


@pytest.fixture
def token(project: Project, cast: Cast) -> str:
    make_model(project, is_champion=True)
    return str(tokens.issue(cast.carol)[1])


def posted(path: str, token: str, body: object) -> bytes:
    data = json.dumps(body).encode()
    lines = ["Host: 127.0.0.1", f"X-Api-Key: {token}", "Content-Type: application/json", f"Content-Length: {len(data)}"]
    return "\r\n".join([f"POST {path} HTTP/1.1", *lines, "", ""]).encode() + data


def asked(path: str, token: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Api-Key: {token}\r\n\r\n".encode()


def answered(opened: socket.socket) -> bytes:
    """What has come within two seconds, which is nothing for whoever waits."""
    opened.settimeout(2)
    try:
        return opened.recv(65536)
    except TimeoutError:
        return b""


def answers_at_once(server: Web, asks: bytes, number: int) -> list[bytes]:
    """What so many equal requests are answered within seconds, while the pages go on; most wait."""
    with ExitStack() as stack:
        opened = [stack.enter_context(server.connect()) for _ in range(number)]
        for client in opened:
            client.sendall(asks)
        time.sleep(1)
        assert max(server.seconds_for("/login/", timeout=10) for _ in range(5)) < PAGE_SECONDS
        with ThreadPoolExecutor(number) as pool:
            return [head for head in pool.map(answered, opened) if head]


def test_trainers_that_wait_leave_the_pages_alone_and_the_rest_is_told_to_come_back(server: Web, token: str) -> None:
    asks = posted("/api/v1/openrlhf/talk/", token, {"query": ["Why? So."], "prompts": ["Why?"]})
    refused = answers_at_once(server, asks, PROCESSES * held("rewards") + 20)
    assert len(refused) >= 20 - PROCESSES
    assert {head[:12] for head in refused} == {b"HTTP/1.1 429"}
    assert all(b"\r\nRetry-After: " in head for head in refused)


def test_models_whose_files_are_hashed_leave_the_pages_alone(
    server: Web, project: Project, cast: Cast, tmp_path: Path
) -> None:
    model = make_model(project, manifest={"files": {"weights": "0" * 64}})
    folder = tmp_path / "artifacts" / model.path
    folder.mkdir(parents=True)
    with (folder / "weights").open("wb") as file:
        file.truncate(40 * 10**9)  # no room is taken, and all of it is read
    asks = asked(f"/api/v1/reward-models/{model.pk}/verification/", str(tokens.issue(cast.carol)[1]))
    refused = answers_at_once(server, asks, PROCESSES * held("artifacts") + 10)
    assert len(refused) >= 10 - PROCESSES
    assert {head[:12] for head in refused} == {b"HTTP/1.1 429"}


def test_scores_that_take_long_wait_within_their_share_and_others_get_a_job_at_once(server: Web, token: str) -> None:
    asks = posted(
        "/api/v1/score/", token, {"items": [{"conversation": [{"role": "user", "content": "Why?"}], "response": "So."}]}
    )
    with ExitStack() as stack:
        opened = [stack.enter_context(server.connect()) for _ in range(20)]
        for client in opened:
            client.sendall(asks)
        assert max(server.seconds_for("/login/", timeout=10) for _ in range(5)) < PAGE_SECONDS
        with ThreadPoolExecutor(len(opened)) as pool:
            heads = list(pool.map(answered, opened))
        at_once = [head for head in heads if head]
        assert {head[:12] for head in at_once} == {b"HTTP/1.1 202"}
        assert len(at_once) >= 20 - PROCESSES * THREADS // 2
        began = time.monotonic()
        for head, client in zip(heads, opened, strict=True):
            client.settimeout(10)
            assert head or client.recv(12) == b"HTTP/1.1 202"
    assert time.monotonic() - began < 2 * SCORE_WAIT_SECONDS
