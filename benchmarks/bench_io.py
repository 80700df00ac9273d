"""Measures how fast data come in and go out, over HTTP, with all processes of `make run`.

`python -m benchmarks.bench_io [--tasks 20000 1000000] [--annotations 1000000] [--layouts ...] [--formats ...]
[--peer-tasks 2000 20000] [--keep FOLDER]`. Every layout of a project with so many annotations is downloaded in every
format. Beside the rows a second stand the seconds to the first byte, the most memory that the processes of the web or
the light worker held meanwhile, and how much that is above what they held in the first fifth of the time. Then files of
plain tasks are imported by the light worker, which has their texts to search for a while afterwards. At last an export
is written to a file by a worker that is killed in the middle (kill -9), and fetched in two parts. Where LABEL_STUDIO
names its environment (benchmarks/bench_peers.py), Label Studio gives back so many tasks with three annotations each
before, and takes as many tasks as ours takes, while our processes rest. --keep keeps the filled database in a folder.
"""

import hashlib
import http.client
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from annotator.launch.run import COMMANDS
from benchmarks import peers, product
from benchmarks.measuring import heading, options, row, task_row
from benchmarks.processes import LIGHT, POSTGRES, WEB, Memory, processes, worked_seconds

if TYPE_CHECKING:
    from annotator.models import User

OF_SEGMENTS = ("rankings", "segments", "helpsteer2d", "stepwise")
"""Layouts that leave from a project of their own, with a tenth as many tasks as the other one has annotations."""
FORMATS = ["jsonl", "json", "csv", "parquet"]
SLUG, IMPORTED = "bench", "imported"
PIECE = 1 << 18
PATIENCE_SECONDS = 3600
MEGABYTE = 10**6


@dataclass(frozen=True)
class Client:
    """Calls REST with the token of the manager."""

    address: str
    token: str

    @contextmanager
    def answer(self, method: str, path: str, body: Any = None, **headers: str) -> Iterator[http.client.HTTPResponse]:
        connection = http.client.HTTPConnection(self.address.removeprefix("http://"), timeout=PATIENCE_SECONDS)
        try:
            headers["Authorization"] = f"Token {self.token}"
            connection.request(method, f"/api/v1/projects/{path}", body, headers)
            yield connection.getresponse()
        finally:
            connection.close()

    def json(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        with self.answer(method, path, body, **headers) as answer:
            content = answer.read()
            assert answer.status < 300, content
            return json.loads(content)

    def until_ended(self, path: str) -> Any:
        """Waits for the end of a job; returns it."""
        while (job := self.json("GET", path))["state"] in ("waiting", "working"):
            time.sleep(0.2)
        assert job["state"] == "done", job
        return job


def measure_in(client: Client, manager: "User", numbers: Sequence[int]) -> None:
    from annotator.models import Membership, Project, Role, Rubric

    heading("tasks", "MB", "seconds", "tasks a second", "processor, s", "MB of the light worker, at most", "growth")
    for number in numbers:
        slug, rubric = f"{IMPORTED}-{number}", Rubric.objects.get(key="helpsteer2", project=None)
        project = Project.objects.create(slug=slug, name=slug, rubric=rubric)
        Membership.objects.create(user=manager, project=project, role=Role.MANAGER)
        with tempfile.TemporaryFile() as file:
            for place in range(number):
                file.write(json.dumps(task_row(place, prompt=170, response=130)).encode() + b"\n")
            size = file.tell()
            file.seek(0)
            worked, memory, start = worked_seconds(WEB, LIGHT, POSTGRES), Memory(LIGHT), time.perf_counter()
            with memory.watched():
                sent = client.json("POST", f"{slug}/import-jobs/", file, **{"Content-Length": str(size)})
                job = client.until_ended(f"{slug}/import-jobs/{sent['id']}/")
            seconds, worked = time.perf_counter() - start, worked_seconds(WEB, LIGHT, POSTGRES) - worked
        assert job["created"] == number, job
        cells = (f"{size / MEGABYTE:.0f}", f"{seconds:.1f}", f"{number / seconds:,.0f}", f"{worked:.1f}")
        row(f"{number:,}", *cells, *memory.cells())


def measure_out(client: Client, slug: str, layouts: Sequence[str], formats: Sequence[str]) -> dict[str, int]:
    """Prints how fast each layout of a project leaves in each format; returns the rows of each layout."""
    if not layouts:
        return {}
    times = ("rows", "MB", "seconds", "rows a second", "first byte, s")
    heading("layout", "format", *times, "MB of the web, at most", "growth")
    rows: dict[str, int] = {}
    for layout in layouts:
        for format in ("jsonl", *(name for name in formats if name != "jsonl")):
            memory, start, first, size, lines = Memory(WEB), time.perf_counter(), 0.0, 0, 0
            with memory.watched(), client.answer("GET", f"{slug}/export/?layout={layout}&format={format}") as answer:
                assert answer.status == 200
                while piece := answer.read1(PIECE):
                    first = first or time.perf_counter() - start
                    size += len(piece)
                    lines += piece.count(b"\n")
            seconds = time.perf_counter() - start
            if format == "jsonl":
                rows[layout] = lines
            if format in formats:
                cells = (f"{size / MEGABYTE:.0f}", f"{seconds:.1f}", f"{rows[layout] / seconds:,.0f}", f"{first:.2f}")
                row(layout, format, f"{rows[layout]:,}", *cells, *memory.cells())
    return rows


def measure_kill(client: Client, layout: str, rows: int) -> None:
    """Has a worker killed in the middle of a file, and fetches what the next one writes in two parts."""
    wanted = json.dumps({"layout": layout})
    job = client.json("POST", f"{SLUG}/export-jobs/", wanted, **{"Content-Type": "application/json"})
    path = f"{SLUG}/export-jobs/{job['id']}/"
    while (job := client.json("GET", path))["rows_done"] == 0:
        assert job["state"] != "done", "it was written before it could be killed: take more annotations"
        time.sleep(0.02)
    for pid in processes(LIGHT):
        os.kill(pid, signal.SIGKILL)
    with product.process(next(command for command in COMMANDS if command.name == "light")):
        done = client.until_ended(path)
    half, content, lines = done["bytes_done"] // 2, hashlib.sha256(), 0
    for part in (f"bytes=0-{half - 1}", f"bytes={half}-"):
        with client.answer("GET", f"{path}file/", Range=part) as answer:
            assert answer.status == 206
            while piece := answer.read(PIECE):
                content.update(piece)
                lines += piece.count(b"\n")
    assert (done["sha256"], done["rows_done"], rows) == (content.hexdigest(), lines, lines)
    print(f"\nKilled after {job['rows_done']:,} of {rows:,} rows: the next worker wrote all of them, {lines:,}.")


def main(words: Sequence[str]) -> None:
    numbers: dict[str, Any] = {"tasks": [20_000, 1_000_000], "annotations": 1_000_000, "peer_tasks": [2_000, 20_000]}
    given = options(words, **numbers, layouts=[""], formats=FORMATS, keep="")
    print(f"Load of the machine before: {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores.", flush=True)
    with product.database(Path(given.keep) if given.keep else None) as folder:
        from annotator.models import Project, Token, User
        from annotator.outputs.exporting.layouts import LAYOUTS
        from benchmarks import segmented_project, workspace_project
        from benchmarks.workspace_pages import MANAGER

        if not Project.objects.filter(slug=SLUG).exists():
            workspace_project.fill(given.annotations)
        manager = User.objects.get(username=MANAGER)
        if not Project.objects.filter(slug=segmented_project.SLUG).exists():
            tasks = given.annotations // 10
            segmented_project.copy(Project.objects.get(slug=SLUG), manager, tasks=tasks)
        Project.objects.filter(slug__startswith=IMPORTED).delete()
        with product.running() as address:
            client = Client(address, Token.objects.create(manager)[1])
            if environment := os.environ.get("LABEL_STUDIO"):
                peers.measure_label_studio(Path(environment), folder, taken=min(given.tasks), given=given.peer_tasks)
            wanted = [name for name in given.layouts if name] or list(LAYOUTS)
            rows = measure_out(client, SLUG, [name for name in wanted if name not in OF_SEGMENTS], given.formats)
            measure_out(client, segmented_project.SLUG, [name for name in wanted if name in OF_SEGMENTS], given.formats)
            measure_in(client, manager, given.tasks)
            if rows:
                layout = max(rows, key=lambda name: rows[name])
                measure_kill(client, layout, rows[layout])


if __name__ == "__main__":
    main(sys.argv[1:])
