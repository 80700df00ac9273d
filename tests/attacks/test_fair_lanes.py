"""Nobody keeps others from imports and uploads: not by many bad rows, nor by hanging up, nor by waiting."""

import gzip
import http.client
import json
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from annotator.accounts import tokens
from annotator.launch.webserver.thread_pools import Held, Lane, Pool
from annotator.models import Membership, Project, Role, User
from tests.builders import make_project, task_row
from tests.conftest import Cast
from tests.web import Web, web

SECONDS = 20
"""For what others want, on a busy machine; on the attackers they waited for minutes."""
BAD = b'{"a":1}\n' * 1_000_000
ATTACKS = {
    "bad rows alone": BAD,
    "bad rows behind a good one": json.dumps(task_row("good")).encode() + b"\n" + BAD,
}


@pytest.fixture
def server(tmp_path: Path, transactional_db: None) -> Iterator[Web]:
    with web(tmp_path) as made:
        yield made


def sent(server: Web, token: str, address: str, body: bytes) -> http.client.HTTPConnection:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=SECONDS)
    headers = {"X-Api-Key": token, "Content-Type": "application/octet-stream"}
    connection.request("POST", f"/api/v1/projects/{address}", body, headers)
    return connection


def token_of(user: User) -> str:
    return str(tokens.issue(user)[1])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("attack", "hang_up"), [("bad rows alone", True), ("bad rows behind a good one", False)], ids=["hang up", "wait"]
)
def test_an_account_s_imports_keep_nobody_else_from_theirs(
    server: Web, project: Project, cast: Cast, attack: str, hang_up: bool
) -> None:
    addresses = []
    for number in range(12):  # one attacker with as many projects and logins as requests
        own = make_project(slug=f"mine-{number}")
        Membership.objects.create(project=own, user=cast.dave, role=Role.MANAGER)
        addresses.append((f"{own.slug}/import/?dry_run=1", token_of(cast.dave)))
    body, token = gzip.compress(ATTACKS[attack]), token_of(cast.carol)
    rows = b"\n".join(json.dumps(task_row(f"t-{number}")).encode() for number in range(700))
    with ExitStack() as stack:
        for address, theirs in addresses:
            connection = stack.enter_context(closing(sent(server, theirs, address, body)))
            if hang_up:
                connection.close()
        time.sleep(1)
        began = time.monotonic()
        with closing(sent(server, token, "talk/import/", rows)) as connection:
            assert json.load(connection.getresponse())["created"] == 700
        with closing(sent(server, token, "talk/import-jobs/?start=0", rows)) as connection:
            assert json.load(connection.getresponse())["state"] == "uploaded"
        assert time.monotonic() - began < SECONDS


def asked(path: str, **headers: str) -> Any:
    request = SimpleNamespace(command="POST", path=path, awaiting_permission=False, error=None, headers=headers)
    return SimpleNamespace(requests=[request], share=None)


@pytest.fixture
def pool() -> Pool:
    """Of four threads, of which nobody works."""
    made = Pool(Lane("imports", lambda _method, _path: True, threads=4, waiting=8, share=2))
    made.set_thread_count(0)
    return made


def test_a_project_and_a_login_take_their_share_and_those_behind_them_go_on(pool: Pool) -> None:
    first = "/api/v1/projects/a/import/"
    asks = [asked(first, COOKIE=str(number)) for number in range(3)]
    asks += [asked(f"/api/v1/projects/{slug}/import/", COOKIE="one") for slug in ("b", "c", "d")]
    held = [Held(channel, pool) for channel in asks]
    for one in held:
        pool.queue.append(one)
    taken = [pool.queue.popleft() for _ in range(4)]
    assert taken == [held[0], held[1], held[3], held[4]]
    assert not pool.queue
    pool.give_back(held[1].senders)
    assert pool.queue.popleft() is held[2]


def test_an_account_has_one_share_for_all_its_projects_and_logins(pool: Pool) -> None:
    held = [Held(asked(f"/api/v1/projects/{slug}/import/", X_API_KEY=slug), pool) for slug in ("a", "b", "c")]
    assert [one.take_for(7) for one in held] == [True, True, False]
    pool.give_back(held[0].senders)
    assert held[2].take_for(7)


def test_a_project_leaves_others_half_of_the_places_to_wait(pool: Pool) -> None:
    for number in range(4):
        pool.queue.append(Held(asked("/api/v1/projects/a/import/", COOKIE=str(number)), pool))
    assert not pool.has_room(Held(asked("/api/v1/projects/a/import/"), pool))
    assert pool.has_room(Held(asked("/api/v1/projects/b/import/"), pool))
