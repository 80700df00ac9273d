"""Measures the pages from the client's side: the rating page, and every page of the workspace, the admin and REST.

`python -m benchmarks.bench_pages [rating|workspace] [--tasks N] [--annotations N] [--keep FOLDER]`; without a word it
measures both. The rating page is asked for in a project of 10,000 tasks with texts about as long as HelpSteer2's:
prompts of 713 characters, responses of 1,493. The workspace is that of a project with 1,000,000 annotations. The exit
status is 1 if one of its pages takes longer than MOST_MILLISECONDS at the median or needs more than MOST_QUERIES.
--keep keeps the filled database of the workspace in a folder, and uses the one that is there already.
"""

import gzip
import json
import re
import statistics
import sys
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import product
from benchmarks.measuring import each_part, heading, options, quantile, row, task_row, timed
from benchmarks.processes import POSTGRES, WEB, worked_seconds
from benchmarks.product import PASSWORD, Visitor

if TYPE_CHECKING:
    from annotator.models import Project, User

REQUESTS = 300
VISITS = 7
"""Requests to each page of the workspace, after a first one."""
MOST_MILLISECONDS, MOST_QUERIES = 300, 20
PAGE = "/projects/bench/annotate/"


def measure_rating(tasks: int) -> None:
    with product.database():
        from django.utils import timezone

        from annotator.models import Membership, Project, Rubric, User
        from annotator.stages.importing import import_rows

        user = User.objects.create_user("alice", password=PASSWORD)
        project = Project.objects.create(slug="bench", name="Bench", rubric=Rubric.objects.get(key="helpsteer2"))
        Membership.objects.create(user=user, project=project)
        lines = b"".join(json.dumps(task_row(number)).encode() + b"\n" for number in range(tasks))
        result = import_rows(project, BytesIO(lines), now=timezone.now())
        assert result.created == tasks, result.rejected[:1]
        with product.running() as address:
            visitor = Visitor(address, "alice")
            reading(visitor)  # warms the server up
            print(f"{tasks:,} tasks, {REQUESTS} requests each, milliseconds")
            heading("request", "median", "p95", "longest")
            for name, times in (
                ("the rating page", reading(visitor)),
                ("a submission, answered with the next task", rating(visitor)),
            ):
                row(name, *(f"{one:.1f}" for one in (statistics.median(times), quantile(times, 0.95), max(times))))
            page = visitor.request("GET", PAGE)[1]
            files = set(re.findall(r'(?:src|href)="(/static/[^"]+)"', page))
            texts = [page, *(visitor.request("GET", name)[1] for name in files)]
            total = sum(len(gzip.compress(text.encode())) for text in texts)
            print(f"\nA first visit to the rating page: {total / 1000:.1f} kB compressed in {len(texts)} files.")


def reading(visitor: Visitor) -> list[float]:
    answers = [timed(lambda: visitor.request("GET", PAGE)[0]) for _ in range(REQUESTS)]
    assert {status for _, status in answers} == {200}
    return [taken for taken, _ in answers]


def rating(visitor: Visitor) -> list[float]:
    """Returns the milliseconds of submissions, each of which is answered with the next task."""
    times, page = [], visitor.request("GET", PAGE)[1]
    for _ in range(REQUESTS):
        names = set(re.findall(r'type="radio" name="([^"]+)"', page)) - {"reason", "category"}
        assert len(names) == 10, names
        form = dict.fromkeys(names, "3") | {"active_seconds": "60"} | Visitor.token(page)
        path = re.findall(r'action="(/assignments/\d+/submit/)"', page)[0]
        taken, (status, page) = timed(lambda path=path, form=form: visitor.request("POST", path, form))  # type: ignore[misc]
        times.append(taken)
        assert status == 200
        assert path not in page
    return times


def measure_workspace(annotations: int, *, kept: Path | None) -> bool:
    """Prints a row for each page and reader; returns whether all pages keep within the limits."""
    with product.database(kept):
        from annotator.models import Annotation, Project, User
        from benchmarks import workspace_pages, workspace_project

        if not Project.objects.filter(slug=workspace_project.SLUG).exists():
            workspace_project.fill(annotations)
        project = Project.objects.get(slug=workspace_project.SLUG)
        if not User.objects.filter(username=workspace_pages.STAFF).exists():
            User.objects.create_superuser(workspace_pages.STAFF, password=PASSWORD)
        workspace_project.count_figures(project)
        written = Annotation.objects.current().for_project(project.pk).count()
        with product.running() as address:
            print(f"\n{project.tasks.count():,} tasks, {written:,} annotations. Milliseconds, {VISITS} after the first")
            heading("page", "as", "queries", "kB", "first", "median", "longest", "processor", "over the limit")
            visits = [
                visit(Visitor(address, name), page, user=User.objects.get(username=name), project=project)
                for name in workspace_pages.READERS
                for page in workspace_pages.all_addresses(project, name)
            ]
    slowest, most, over = max(one[0] for one in visits), max(one[1] for one in visits), sum(one[2] for one in visits)
    print(f"\n{len(visits)} pages, the slowest {slowest:.0f} ms, most queries {most}; {over} over the limits.")
    return not over


def visit(visitor: Visitor, page: str, *, user: "User", project: "Project") -> tuple[float, int, bool]:
    """Prints what a page costs; returns its median, its queries, and whether there is something wrong with it.

    `processor` is what the web and PostgreSQL worked for one request after the first.
    """
    from benchmarks import workspace_pages

    first, (status, text) = timed(lambda: visitor.request("GET", page))
    worked = worked_seconds(WEB, POSTGRES)
    times = [timed(lambda: visitor.request("GET", page))[0] for _ in range(VISITS)]
    worked = 1000 * (worked_seconds(WEB, POSTGRES) - worked) / VISITS
    median, queries = statistics.median(times), workspace_pages.queries(user, page)[1]
    faults = ["status"] * (status != 200) + ["queries"] * (queries > MOST_QUERIES)
    faults += ["time"] * (median > MOST_MILLISECONDS)
    shown = page.removeprefix(f"/projects/{project.slug}/") or "(overview)"
    numbers = (len(text.encode()) / 1000, first, median, max(times), worked)
    row(f"`{shown}`", visitor.name, queries, *(f"{one:.0f}" for one in numbers), ", ".join(faults))
    return median, queries, bool(faults)


def main(words: Sequence[str]) -> int:
    parts = {"rating", "workspace"}
    given = options(words, parts=sorted(parts), tasks=10_000, annotations=1_000_000, keep="")
    if len(given.parts) > 1:
        return each_part("benchmarks.bench_pages", given.parts, [word for word in words if word not in parts])
    if given.parts == ["rating"]:
        measure_rating(given.tasks)
        return 0
    return 0 if measure_workspace(given.annotations, kept=Path(given.keep) if given.keep else None) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
