"""Behind the proxy that ships with Docker Compose, slow strangers do not reach the web server."""

import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from django.conf import settings

from annotator.launch.run import ROOT
from tests.attacks.test_sockets import LIVE, SLOW_BODY, SLOW_HEADER, sockets
from tests.celery_workers import wait_for
from tests.web import Web, free_port, web

CONFIGURATION = (ROOT / "deploy" / "nginx.conf").read_text()
NGINX = shutil.which("nginx") or os.environ.get("NGINX", "")
needs_nginx = pytest.mark.skipif(not NGINX, reason="nginx is not installed")


@pytest.fixture
def server(tmp_path: Path, django_db_setup: None) -> Iterator[Web]:
    with web(tmp_path) as made:
        yield made


@pytest.fixture
def proxy(server: Web, tmp_path: Path) -> Iterator[Web]:
    """nginx as it ships, but for the two addresses and its folders."""
    port = free_port()
    folders = "".join(
        f"{kind}_temp_path {tmp_path}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    text = CONFIGURATION.replace("web:8000", f"127.0.0.1:{server.port}").replace("listen 8000", f"listen {port}")
    file = tmp_path / "nginx.conf"
    file.write_text("daemon off; user root;\n" + text.replace("http {\n", f"http {{\n{folders}"))
    words = [NGINX, "-p", str(tmp_path), "-e", "stderr", "-c", str(file), "-g", f"pid {tmp_path}/nginx.pid;"]
    with subprocess.Popen(words, start_new_session=True) as process:
        made = Web(port, process, server.temporary, server.log)
        try:
            wait_for(made.answers, what="nginx")
            yield made
        finally:
            os.killpg(process.pid, signal.SIGTERM)


def opened_from(stack: ExitStack, host: str, port: int, first: bytes) -> socket.socket:
    made = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20, source_address=(host, 0)))
    made.sendall(first)
    return made


@needs_nginx
@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_nine_hundred_slow_sockets_delay_nobody_and_reach_no_process_of_the_web(server: Web, proxy: Web) -> None:
    with ExitStack() as stack:
        for number in range(900):
            opened_from(stack, f"127.0.0.{2 + number % 3}", proxy.port, SLOW_BODY if number % 2 else SLOW_HEADER)
        assert max(proxy.seconds_for(LIVE, timeout=10) for _ in range(5)) < 1
        assert max(proxy.seconds_for("/login/", timeout=10) for _ in range(5)) < 2
        assert sum(sockets(pid, server.port) for pid in server.workers()) < 20


@needs_nginx
@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_an_address_has_a_limit_of_connections_and_leaves_others_theirs(proxy: Web) -> None:
    with ExitStack() as stack:
        held = [opened_from(stack, "127.0.0.2", proxy.port, SLOW_BODY) for _ in range(420)]
        time.sleep(0.5)
        held[-1].settimeout(5)
        assert held[-1].recv(12) == b"HTTP/1.1 429"
        assert proxy.seconds_for("/login/", timeout=10) < 2


def test_the_proxy_takes_what_the_web_server_takes() -> None:
    sizes = re.findall(r"client_max_body_size (\w+);", CONFIGURATION)
    assert sizes == [f"{settings.JSON_MAX_BYTES // 1_000_000}m", "0"]
