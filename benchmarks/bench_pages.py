"""Measures the pages from the client's side: the rating page, and every page of the workspace, the admin and REST.

`python -m benchmarks.bench_pages [rating|workspace] [--tasks N] [--annotations N] [--keep FOLDER]`; without a word it
measures both. The rating page is asked for in a project of 10,000 tasks with texts about as long as HelpSteer2's:
prompts of 713 characters, responses of 1,493. The workspace is that of a project with 1,000,000 annotations. The exit
status is 1 if one of its pages takes longer than MOST_MILLISECONDS at the median or needs more than MOST_QUERIES.
--keep keeps the filled database of the workspace in a folder, and uses the one that is there already.
"""

import argparse
import gzip
import json
import random
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import product
from benchmarks.visitor import PASSWORD, Visitor

if TYPE_CHECKING:
    from annotator.models import Project

REQUESTS = 300
VISITS = 7
"""Requests to each page of the workspace, after a first one."""
MOST_MILLISECONDS, MOST_QUERIES = 300, 20
ANNOTATIONS = 1_000_000
COLUMNS = ("page", "as", "queries", "kB", "first", "median", "longest", "processor", "over the limit")
PARTS = ("rating", "workspace")
WORDS = ("water", "light", "time", "question", "answer", "because", "small", "the", "a", "of", "and", "with", "is")


def fill(tasks: int) -> None:
    """Makes a project with so many tasks and with alice in it."""
    from django.utils import timezone

    from annotator.importing import import_rows
    from annotator.models import Membership, Project, Rubric, User

    user = User.objects.create_user("alice", password=PASSWORD)
    project = Project.objects.create(slug="bench", name="Bench", rubric=Rubric.objects.get(key="helpsteer2"))
    Membership.objects.create(user=user, project=project)
    dice = random.Random(1)
    lines = (json.dumps(task(number, dice)).encode() + b"\n" for number in range(tasks))
    result = import_rows(project, BytesIO(b"".join(lines)), now=timezone.now())
    assert result.created == tasks, result.rejected[:1]


def task(number: int, dice: random.Random) -> dict[str, object]:
    prompt = f"Question {number}: {text(dice, 700)}"
    return {
        "id": f"t-{number}",
        "messages": [{"role": "user", "content": prompt}],
        "responses": [{"text": text(dice, 1493)} for _ in range(2)],
    }


def text(dice: random.Random, characters: int) -> str:
    """Returns paragraphs and a list in markdown, as rendering them is part of what a page costs."""
    words = " ".join(dice.choices(WORDS, k=characters // 4))[:characters]
    first, strong, second, rest = words[:400], words[400:440], words[440:600], words[600:]
    return f"{first}\n\n- **{strong}**\n- {second}\n\n{rest}"


def timed(action: str, seconds: list[float]) -> str:
    ordered = sorted(1000 * second for second in seconds)
    p95 = ordered[int(0.95 * len(ordered))]
    return f"| {action} | {statistics.median(ordered):.1f} | {p95:.1f} | {ordered[-1]:.1f} |"


def reading(visitor: Visitor) -> list[float]:
    seconds = []
    for _ in range(REQUESTS):
        start = time.perf_counter()
        status, _ = visitor.request("GET", "/projects/bench/annotate/")
        seconds.append(time.perf_counter() - start)
        assert status == 200
    return seconds


def rating(visitor: Visitor) -> list[float]:
    """Returns the seconds of submissions, each of which is answered with the next task."""
    seconds = []
    page = visitor.request("GET", "/projects/bench/annotate/")[1]
    for _ in range(REQUESTS):
        form = filled(page)
        path = re.findall(r'action="(/assignments/\d+/submit/)"', page)[0]
        start = time.perf_counter()
        status, page = visitor.request("POST", path, form)
        seconds.append(time.perf_counter() - start)
        assert status == 200
        assert path not in page
    return seconds


def filled(page: str) -> dict[str, str]:
    names = set(re.findall(r'type="radio" name="([^"]+)"', page)) - {"reason", "category"}
    assert len(names) == 10, names
    return dict.fromkeys(names, "3") | {"active_seconds": "60"} | Visitor.token(page)


def weight(visitor: Visitor) -> tuple[int, int]:
    """Returns the compressed bytes of the page and of everything that it loads at once, and the number of files."""
    page = visitor.request("GET", "/projects/bench/annotate/")[1]
    files = set(re.findall(r'(?:src|href)="(/static/[^"]+)"', page))
    sizes = [len(gzip.compress(visitor.request("GET", name)[1].encode())) for name in files]
    return len(gzip.compress(page.encode())) + sum(sizes), len(files) + 1


def measure_rating(tasks: int) -> None:
    with product.database():
        fill(tasks)
        with product.running() as address:
            visitor = Visitor(address, "alice")
            reading(visitor)  # warms the server up
            print(f"{tasks:,} tasks, {REQUESTS} requests each, milliseconds\n")
            print("| request | median | p95 | longest |\n|---|---|---|---|")
            print(timed("the rating page", reading(visitor)))
            print(timed("a submission, answered with the next task", rating(visitor)))
            total, files = weight(visitor)
            print(f"\nA first visit to the rating page: {total / 1000:.1f} kB compressed in {files} files.")


# The workspace ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Visit:
    """What a page cost: the first request to it, and those after it.

    `processor` is what the web and PostgreSQL worked for one of these, in milliseconds.
    """

    address: str
    name: str
    status: int
    queries: int
    size: int
    first: float
    seconds: list[float]
    processor: float

    @property
    def median(self) -> float:
        return 1000 * statistics.median(self.seconds)

    def faults(self) -> str:
        """Returns what is wrong with the page, empty if nothing is."""
        found = ["status"] * (self.status != 200) + ["queries"] * (self.queries > MOST_QUERIES)
        return ", ".join(found + ["time"] * (self.median > MOST_MILLISECONDS))

    def row(self) -> str:
        times = (1000 * self.first, self.median, 1000 * max(self.seconds), self.processor)
        cells = [str(self.queries), f"{self.size / 1000:.0f}", *(f"{time:.0f}" for time in times), self.faults()]
        return f"| `{self.address}` | {self.name} | {' | '.join(cells)} |"


def measure_workspace(annotations: int, *, kept: Path | None) -> bool:
    """Prints a row for each page and reader; returns whether all pages keep within the limits."""
    with product.database(kept):
        from annotator.models import Project, User
        from benchmarks import workspace_pages, workspace_project

        if not Project.objects.filter(slug=workspace_project.SLUG).exists():
            workspace_project.fill(annotations)
        project = Project.objects.get(slug=workspace_project.SLUG)
        if not User.objects.filter(username=workspace_pages.STAFF).exists():
            User.objects.create_superuser(workspace_pages.STAFF, password=PASSWORD)
        workspace_project.count_figures(project)
        with product.running() as address:
            print(f"\n{_size_of(project)}. {VISITS} requests after the first one, milliseconds\n")
            print(f"| {' | '.join(COLUMNS)} |\n{len(COLUMNS) * '|---'}|")
            visits = []
            for visit in _visits(project, address):
                visits.append(visit)
                print(visit.row(), flush=True)
    slowest, most = max(visit.median for visit in visits), max(visit.queries for visit in visits)
    over = sum(bool(visit.faults()) for visit in visits)
    print(f"\n{len(visits)} pages, the slowest {slowest:.0f} ms, most queries {most}; {over} over the limits.")
    return not over


def _size_of(project: "Project") -> str:
    from annotator.models import Annotation

    annotations = Annotation.objects.current().for_project(project.pk).count()
    return f"{project.tasks.count():,} tasks, {annotations:,} annotations"


def _visits(project: "Project", address: str) -> Iterator[Visit]:
    from annotator.models import User
    from benchmarks import processor_time, workspace_pages

    for name in workspace_pages.READERS:
        visitor, user = Visitor(address, name), User.objects.get(username=name)
        for page in workspace_pages.all_addresses(project, name):
            seconds, status, text, worked = [], 0, "", 0.0
            for number in range(1 + VISITS):
                if number == 1:
                    worked = processor_time.milliseconds()
                start = time.perf_counter()
                status, text = visitor.request("GET", page)
                seconds.append(time.perf_counter() - start)
            worked = (processor_time.milliseconds() - worked) / VISITS
            queries = workspace_pages.queries(user, page)[1]
            shown = page.removeprefix(f"/projects/{project.slug}/") or "(overview)"
            yield Visit(shown, name, status, queries, len(text.encode()), seconds[0], seconds[1:], worked)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench_pages")
    parser.add_argument("part", nargs="?", choices=PARTS)
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--annotations", type=int, default=ANNOTATIONS)
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args(arguments)
    if given.part == "rating":
        measure_rating(given.tasks)
        return 0
    if given.part == "workspace":
        return 0 if measure_workspace(given.annotations, kept=given.keep) else 1
    # In processes of their own: each part has its own servers, and Django reads their addresses once.
    command = [sys.executable, "-m", "benchmarks.bench_pages"]
    return max(subprocess.run([*command, part, *arguments], check=False).returncode for part in PARTS)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
