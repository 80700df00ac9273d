"""Measures how fast data come in and go out, over HTTP, with all processes of `make run`.

`python -m benchmarks.bench_io [--tasks 20000 1000000] [--annotations 1000000] [--layouts ...] [--formats ...]`. Files
of plain tasks are imported by the light worker; then every layout of a project with so many annotations is downloaded
in every format. Beside the rows a second stand the seconds to the first byte, and the most memory that the processes
of the web or the light worker held while they did it. At last an export is written to a file by a worker that is killed
in the middle (kill -9), and fetched in two parts.
"""

import argparse
import hashlib
import http.client
import json
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from annotator.launch.run import COMMANDS
from benchmarks import product

if TYPE_CHECKING:
    from annotator.models import User

WEB, LIGHT = b"annotator.launch.webserver", b"-Q light"
FORMATS = ("jsonl", "csv", "parquet")
SLUG, IMPORTED = "bench", "imported"
PIECE = 1 << 18
PATIENCE_SECONDS = 3600
MEGABYTE = 10**6


class Memory:
    """The most memory that processes of a kind hold together, in bytes, looked at every twentieth of a second."""

    def __init__(self, kind: bytes) -> None:
        self.peak = 0
        self._kind = kind
        self._over = threading.Event()

    @contextmanager
    def watched(self) -> Iterator[None]:
        watcher = threading.Thread(target=self._watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            self._over.set()
            watcher.join()

    def _watch(self) -> None:
        while not self._over.wait(0.05):
            self.peak = max(self.peak, sum(map(_resident, processes(self._kind))))


def processes(kind: bytes) -> list[int]:
    """Returns the ids of the processes that have this in their command line."""
    found = []
    for folder in Path("/proc").iterdir():
        with suppress(OSError):
            if folder.name.isdecimal() and kind in (folder / "cmdline").read_bytes().replace(b"\0", b" "):
                found.append(int(folder.name))
    return found


def _resident(pid: int) -> int:
    with suppress(OSError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


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


# In --------------------------------------------------------------------------------------------------------


def write_tasks(file: IO[bytes], number: int) -> None:
    """Writes tasks of about 500 bytes: a prompt of 150 characters and two responses of 120."""
    prompt, response = "Why does the light change? " * 6, "Because the sun is lower in the evening. " * 3
    for place in range(number):
        row = {
            "id": f"t-{place}",
            "messages": [{"role": "user", "content": f"{place}: {prompt}"}],
            "responses": [{"text": f"{side}{place} {response}"} for side in "ab"],
        }
        file.write(json.dumps(row).encode() + b"\n")


def measure_in(client: Client, manager: "User", numbers: Sequence[int]) -> None:
    print("| tasks | MB | seconds | tasks a second | MB of the light worker, at most |\n|---|---|---|---|---|")
    for number in numbers:
        slug = f"{IMPORTED}-{number}"
        _make_project(slug, manager)
        with tempfile.TemporaryFile() as file:
            write_tasks(file, number)
            size = file.tell()
            file.seek(0)
            memory, start = Memory(LIGHT), time.perf_counter()
            with memory.watched():
                sent = client.json("POST", f"{slug}/import-jobs/", file, **{"Content-Length": str(size)})
                job = client.until_ended(f"{slug}/import-jobs/{sent['id']}/")
            seconds = time.perf_counter() - start
        assert job["created"] == number, job
        row = f"| {number:,} | {size / MEGABYTE:.0f} | {seconds:.1f} | {number / seconds:,.0f} |"
        print(row, f"{memory.peak / MEGABYTE:.0f} |", flush=True)


def _make_project(slug: str, manager: "User") -> None:
    from annotator.models import Membership, Project, Role, Rubric

    project = Project.objects.create(slug=slug, name=slug, rubric=Rubric.objects.get(key="helpsteer2", project=None))
    Membership.objects.create(user=manager, project=project, role=Role.MANAGER)


# Out -------------------------------------------------------------------------------------------------------


def measure_out(client: Client, layouts: Sequence[str], formats: Sequence[str]) -> dict[str, int]:
    """Prints how fast each layout leaves in each format; returns the rows of each layout."""
    print("\n| layout | format | rows | MB | seconds | rows a second | first byte, s | MB of the web, at most |")
    print("|---|---|---|---|---|---|---|---|")
    rows: dict[str, int] = {}
    for layout in layouts:
        for format in ("jsonl", *(name for name in formats if name != "jsonl")):
            memory, start, first, size, lines = Memory(WEB), time.perf_counter(), 0.0, 0, 0
            with memory.watched(), client.answer("GET", f"{SLUG}/export/?layout={layout}&format={format}") as answer:
                assert answer.status == 200
                while piece := answer.read1(PIECE):
                    first = first or time.perf_counter() - start
                    size += len(piece)
                    lines += piece.count(b"\n")
            seconds = time.perf_counter() - start
            if format == "jsonl":
                rows[layout] = lines
            if format in formats:
                row = f"| {layout} | {format} | {rows[layout]:,} | {size / MEGABYTE:.0f} | {seconds:.1f} |"
                rate = f"{rows[layout] / seconds:,.0f} | {first:.2f} | {memory.peak / MEGABYTE:.0f} |"
                print(row, rate, flush=True)
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
    half = done["bytes_done"] // 2
    content = hashlib.sha256()
    lines = 0
    for part in (f"bytes=0-{half - 1}", f"bytes={half}-"):
        with client.answer("GET", f"{path}file/", Range=part) as answer:
            assert answer.status == 206
            while piece := answer.read(PIECE):
                content.update(piece)
                lines += piece.count(b"\n")
    assert (done["sha256"], done["rows_done"], rows) == (content.hexdigest(), lines, lines)
    print(f"\nKilled after {job['rows_done']:,} of {rows:,} rows: the next worker wrote all of them, {lines:,}.")


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description="How fast data come in and go out.")
    parser.add_argument("--tasks", type=int, nargs="*", default=[20_000, 1_000_000])
    parser.add_argument("--annotations", type=int, default=1_000_000)
    parser.add_argument("--layouts", nargs="*")
    parser.add_argument("--formats", nargs="*", choices=FORMATS, default=FORMATS)
    parser.add_argument("--keep", type=Path, help="a folder in which the database stays, and may be there already")
    given = parser.parse_args(arguments)
    with product.database(given.keep):
        from annotator.exporting.layouts import LAYOUTS
        from annotator.models import Project, Token, User
        from benchmarks import workspace_project
        from benchmarks.workspace_pages import MANAGER

        if not Project.objects.filter(slug=SLUG).exists():
            workspace_project.fill(given.annotations)
        Project.objects.filter(slug__startswith=IMPORTED).delete()
        manager = User.objects.get(username=MANAGER)
        with product.running() as address:
            client = Client(address, Token.objects.create(manager)[1])
            measure_in(client, manager, given.tasks)
            rows = measure_out(client, given.layouts or list(LAYOUTS), given.formats)
            layout = max(rows, key=lambda name: rows[name])
            measure_kill(client, layout, rows[layout])


if __name__ == "__main__":
    main(sys.argv[1:])
