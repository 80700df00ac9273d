"""What docs/operating.md says about several machines, followed line by line with a folder for each host."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from django.conf import LazySettings
from django.conf import settings as product
from django.test import Client

from annotator.infrastructure.background import heartbeats, messages, redis_client
from annotator.infrastructure.background.fitness import UnfitReason
from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.storage import artifacts
from annotator.models import ExportJob, Project, User
from annotator.outputs.exporting import export_jobs
from annotator.outputs.exporting.filters import EVERYTHING
from tests.celery_workers import environment, wait_for
from tests.conftest import Cast
from tests.refusals import refusal
from tests.web import free_port

PAGE = product.BASE_DIR / "docs" / "operating.md"
PREPARE, WEB, WORKERS, _BEAT, _PROBE = range(5)
"""The blocks of the section, in their order."""


def blocks() -> list[list[str]]:
    section = PAGE.read_text().split("## Several machines\n")[1].split("\n## ")[0]
    return [block.strip().splitlines() for block in re.findall(r"```bash\n(.*?)```", section, re.DOTALL)]


@dataclass
class Host:
    """A machine, as far as files and names tell one: it has its own VAR_DIR."""

    name: str
    folder: Path
    shared: Path
    port: int = field(default_factory=free_port)

    def variables(self) -> dict[str, str]:
        ours = {"SHARED": str(self.shared), "PORT": str(self.port), "WEB_PROCESSES": "1", "HOST": "127.0.0.1"}
        return environment(self.folder, **ours)

    def follow(self, block: int) -> None:
        """Carries out a block's lines in their order, as somebody at this host's terminal."""
        lines = [self._line(line) for line in blocks()[block]]
        subprocess.run(
            ["bash", "-euc", "\n".join(lines)], env=self.variables(), cwd=product.BASE_DIR, check=True, timeout=120
        )

    @contextmanager
    def running(self, block: int, line: int = 0) -> Iterator[None]:
        """Has a line of a block run for a while."""
        command = shlex.split(self._line(blocks()[block][line]))
        with (self.folder.parent / f"{self.name}-{block}.log").open("ab") as log:
            process = subprocess.Popen(
                command, env=self.variables(), cwd=product.BASE_DIR, stdout=log, stderr=log, start_new_session=True
            )
        try:
            yield
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def _line(self, line: str) -> str:
        return line.replace(".venv/bin/", f"{Path(sys.executable).parent}/").replace("%h", self.name)

    def unfit(self) -> UnfitReason | str | None:
        found = [worker for worker in heartbeats.workers() if worker.name == f"light@{self.name}"]
        return found[0].unfit if found else "silent"

    def ready(self) -> tuple[int, dict[str, Any]]:
        address = shlex.split(blocks()[_PROBE][0])[-1].replace("$PORT", str(self.port))
        try:
            with urlopen(address, timeout=10) as answer:
                return answer.status, json.load(answer)
        except HTTPError as refused:
            return refused.code, json.load(refused)
        except OSError:
            return 0, {}


@pytest.fixture
def hosts(tmp_path: Path, settings: LazySettings) -> Iterator[tuple[Host, Host]]:
    shared = tmp_path / "shared"
    shared.mkdir()
    redis_client.connection().delete(heartbeats.KEY, *heartbeats.QUEUES)
    settings.ARTIFACTS = shared
    yield tuple(Host(name, tmp_path / name, shared) for name in ("one", "other"))  # type: ignore[misc]
    redis_client.connection().delete(heartbeats.KEY, *heartbeats.QUEUES)


def asked(project: Project, by: User, number: int) -> list[ExportJob]:
    wanted: dict[str, Any] = {"layout": "annotations", "format": "jsonl", "filters": EVERYTHING, "by": by}
    return [export_jobs.request(project, now=database_now(), **wanted) for _ in range(number)]


def states(asked_for: list[ExportJob]) -> set[str]:
    return set(ExportJob.objects.filter(pk__in=[job.pk for job in asked_for]).values_list("state", flat=True))


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_host_without_the_shared_folder_takes_nothing_until_it_has_it(
    client: Client, project: Project, cast: Cast, hosts: tuple[Host, Host]
) -> None:
    one, other = hosts
    one.follow(PREPARE)
    assert artifacts.marker().is_file()
    other.folder.mkdir()  # nobody has followed the first lines there
    with ExitStack() as there, ExitStack() as here:
        there.enter_context(other.running(WEB))
        there.enter_context(other.running(WORKERS))
        here_worker = here.enter_context(ExitStack())
        here_worker.enter_context(one.running(WORKERS))
        wait_for(lambda: one.unfit() is None and other.unfit() == UnfitReason.ARTIFACTS, what="both workers")
        wait_for(lambda: other.ready()[0], what="the web of the host without the folder")
        here_health = client.get("/api/v1/health/ready/")
        assert (here_health.status_code, here_health.json()["status"]) == (200, "degraded")
        status, health = other.ready()
        assert (status, health["artifacts"], health["static_files"]) == (503, False, False)
        # One worker would have taken half of them, and failed them all.
        first = asked(project, cast.carol, 6)
        for _ in range(6):
            messages.send("annotator.tasks.run_exports")
        wait_for(lambda: states(first) == {"done"}, what="the files of the host that sees the folder")
        here_worker.close()
        wait_for(lambda: one.unfit() == "silent", what="the end of the only worker that is fit")
        with refusal("no_worker", match="it does not see the installation's artifacts"):
            asked(project, cast.carol, 1)
        other.follow(PREPARE)
        wait_for(lambda: other.unfit() is None, what="the folder to be seen")
        second = asked(project, cast.carol, 2)
        wait_for(lambda: states(second) == {"done"}, what="the files of the other host")


def test_every_line_of_the_page_is_known() -> None:
    programs = [[shlex.split(line)[0].rsplit("/", 1)[-1] for line in block] for block in blocks()]
    store = ["export", "python", "python", "python"]  # followed in test_object_store.py
    assert programs == [["mkdir", "ln", "python"], ["python"], ["celery"] * 3, ["celery"], ["curl"], store]
