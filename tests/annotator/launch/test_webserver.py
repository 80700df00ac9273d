"""The web server's own parts; tests/attacks drives a whole one over sockets."""

import errno
import os
import signal
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from annotator.launch.run import ROOT
from annotator.launch.webserver import processes
from annotator.launch.webserver.processes import Processes
from annotator.launch.webserver.server import MOST_CONNECTIONS, Server, SharedCounters
from annotator.launch.webserver.thread_pools import Lanes, lanes, most_threads


def test_a_process_with_more_connections_gives_way() -> None:
    counters = SharedCounters(3)
    counters.set_connections(0, 3)
    counters.set_connections(1, 2)
    assert (counters.is_busiest(0), counters.is_busiest(1)) == (True, False)


def test_nobody_waits_for_a_process_that_has_ended() -> None:
    counters = SharedCounters(2)
    counters.set_connections(0, 3)
    counters.set_connections(1, 2)
    counters.clear(1)
    assert not counters.is_busiest(0)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/", "pages"),
        ("/api/v1/score/", "pages"),
        ("/api/v1/health/live/", "live"),
        ("/api/v1/health/ready/", "ready"),
        ("/metrics", "metrics"),
        ("/api/v1/openrlhf/talk/", "rewards"),
        ("/api/v1/projects/talk/export/", "exports"),
        ("/api/v1/projects/talk/import/", "imports"),
        ("/api/v1/projects/talk/import-jobs/", "uploads"),
        ("/projects/talk/data/import/", "uploads"),
        ("/projects/talk/evaluation-jobs/", "uploads"),
        ("/api/v1/projects/talk/snapshots/", "pages"),
        ("/api/v1/reward-models/7/verification/", "artifacts"),
        ("/admin/reward-models/7/verify/", "artifacts"),
    ],
)
def test_what_waits_or_streams_has_threads_of_its_own(path: str, name: str) -> None:
    assert next(lane.name for lane in lanes(4) if lane.serves("POST", path)) == name


def test_every_thread_finds_a_connection_in_the_pool() -> None:
    shows = "from django.conf import settings; print(settings.DATABASES['default']['OPTIONS']['pool']['max_size'])"
    for threads in (1, 4, 6):
        assert int(ran(shows, WEB_THREADS=str(threads)).stdout) >= most_threads(threads)


def ran(program: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "annotator.settings", "SECRET_KEY": "k" * 50, **variables}
    return subprocess.run(
        [sys.executable, "-c", program], env=environment, cwd=ROOT, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("name", ["WEB_PROCESSES", "WEB_THREADS", "FORM_MAX_BYTES"])
@pytest.mark.parametrize("value", ["0", "many", "-1"])
def test_a_number_that_is_none_stops_the_start_and_is_named(name: str, value: str) -> None:
    done = ran("from django.conf import settings; settings.DEBUG", **{name: value})
    assert done.returncode != 0
    assert f"{name} is" in done.stderr.splitlines()[-1]


def test_a_lane_that_is_full_says_so_and_takes_no_page_s_thread() -> None:
    made = Lanes(1)
    made.shutdown()  # nobody works on anything
    asked = [
        SimpleNamespace(
            command="POST", path="/api/v1/openrlhf/talk/", awaiting_permission=False, error=None, headers={}
        )
        for _ in range(6)
    ]
    for request in asked:
        made.add_task(SimpleNamespace(requests=[request]))
    codes = [request.error and request.error.code for request in asked]
    assert codes == [None] * 4 + [429] * 2


def test_connections_that_come_meanwhile_do_no_harm_to_a_count_of_large_bodies() -> None:
    server = Server.__new__(Server)
    channels: dict[int, Any] = {}

    def brings_much() -> bool:
        """As if the loop accepted a connection just now."""
        channels[len(channels)] = SimpleNamespace(brings_much=lambda: False)
        return True

    channels[0] = SimpleNamespace(brings_much=brings_much)
    server.active_channels = channels
    assert server.large_bodies() == 1


def test_a_process_that_cannot_be_started_is_tried_again_later(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse() -> int:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(processes, "SHORT_LIFE_SECONDS", 0)
    made = Processes(None, SimpleNamespace(), number=1, threads=1)  # type: ignore[arg-type]
    with monkeypatch.context() as full:
        full.setattr(os, "fork", refuse)
        made._start_missing()
    assert made.running == {}
    assert not set(processes.SIGNALS) & signal.pthread_sigmask(signal.SIG_BLOCK, ())
    assert "could not be started: [Errno 11]" in caplog.text
    monkeypatch.setattr(os, "fork", lambda: 4711)
    made._start_missing()
    assert made.running == {0: 4711}


def test_a_process_whose_loop_stands_still_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "SILENT_SECONDS", 3 * processes.ROUND_SECONDS)
    with subprocess.Popen(["sleep", "60"]) as hangs, subprocess.Popen(["sleep", "60"]) as works:
        made = Processes(None, SimpleNamespace(), number=2, threads=1)  # type: ignore[arg-type]
        made.running = {0: hangs.pid, 1: works.pid}
        for _ in range(5):
            made.counters.tick(1)
            made._replace_hanging()
        assert hangs.wait(5) == -9
        assert works.poll() is None
        works.kill()


def test_of_too_many_connections_the_one_goes_that_waited_longest() -> None:
    closed: list[int] = []

    def channel(number: int, *, idle: bool) -> Any:
        return SimpleNamespace(
            began=number, idle_since=number, is_idle=lambda: idle, handle_close=lambda: closed.append(number)
        )

    crowd = {number: channel(number, idle=number > 2) for number in range(MOST_CONNECTIONS)}
    assert Server._make_room(SimpleNamespace(active_channels=crowd))  # type: ignore[arg-type]
    assert closed == [3]
