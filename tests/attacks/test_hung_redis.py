"""A Redis that accepts and never answers: nobody waits for it for more than a second, and nothing is broken by it."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from rest_framework.test import APIClient

from annotator.infrastructure.background import heartbeats
from annotator.models import Project
from tests import servers
from tests.annotator.api.test_work import form, leased
from tests.builders import imported, json_lines, label_row, make_task, rate, task_row
from tests.conftest import Cast

MOST_SECONDS = 1.5
Door = Callable[[APIClient], Any]
pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def hung_redis() -> Iterator[None]:
    """All queues have workers, as far as Redis was ever told; then it stops."""
    heartbeats.beat("all", list(heartbeats.QUEUES))
    (server,) = (candidate for candidate in servers.running if candidate.name == "redis")
    assert server.process.pid
    os.kill(server.process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(server.process.pid, signal.SIGCONT)
        heartbeats.forget("all")


@pytest.fixture
def carol(project: Project, cast: Cast, monkeypatch: pytest.MonkeyPatch) -> APIClient:
    """A manager who rates as well, in a project with something to learn from."""
    imported(project, label_row("What is it?", "It is this."))
    make_task(project)
    rate(project, cast.bob)
    monkeypatch.setattr("annotator.stages.review.exclusions.SYNC_LIMIT", 0)
    client = APIClient(raise_request_exception=False)
    client.force_authenticate(cast.carol)
    cast.carol.is_staff = True
    cast.carol.save(update_fields=["is_staff"])
    client.force_login(cast.carol)
    import_a_task(client)  # what the first requests load is not what is measured
    client.get("/admin/")
    return client


def import_a_task(client: APIClient) -> Any:
    rows = json_lines(task_row("new")).read().decode()
    return client.generic("POST", "/api/v1/projects/talk/import/", rows, content_type="application/x-ndjson")


def rate_a_task(client: APIClient) -> Any:
    lease = leased(client)
    return client.put(f"/api/v1/assignments/{lease['assignment']}/annotation/?next=1", form(lease))


DOORS: dict[str, tuple[Door, int]] = {
    "import": (import_a_task, 200),
    "annotation": (rate_a_task, 201),
    "protocol": (lambda client: client.patch("/api/v1/projects/talk/", {"base_annotators": 2}), 200),
    "exclusion": (
        lambda client: client.post("/api/v1/projects/talk/exclusions/", {"annotator": "bob", "reason": "Clicks."}),
        202,
    ),
    "run": (lambda client: client.post("/api/v1/projects/talk/training-runs/", {}), 503),
    "health": (lambda client: client.get("/api/v1/health/ready/"), 503),
    "overview": (lambda client: client.get("/admin/"), 200),
}


@pytest.mark.parametrize("door", DOORS)
def test_nobody_waits_long_for_a_redis_that_hangs(carol: APIClient, hung_redis: None, door: str) -> None:
    call, status = DOORS[door]
    began = time.monotonic()
    answer = call(carol)
    assert (answer.status_code, time.monotonic() - began < MOST_SECONDS) == (status, True), answer.content[:500]


def test_after_a_wait_in_vain_the_next_ones_do_not_wait(carol: APIClient, hung_redis: None) -> None:
    import_a_task(carol)
    began = time.monotonic()
    assert [carol.post("/api/v1/projects/talk/training-runs/", {}).status_code for _ in range(5)] == [503] * 5
    assert time.monotonic() - began < MOST_SECONDS
