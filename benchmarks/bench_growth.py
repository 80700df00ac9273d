"""Measures what a claim and a submission cost as the number of tasks grows, and that of tasks an annotator has done.

`python -m benchmarks.bench_growth [TASKS ...]`. Calls the stages in this process, without HTTP. The yardstick is a
plain SELECT of a task by its primary key over the same connection. Tasks have a prompt of 300 characters and two
responses of 200.
"""

import random
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from benchmarks import product
from benchmarks.load import rated

if TYPE_CHECKING:
    from annotator.models import Project, User

TASKS = (10_000, 100_000, 1_000_000)
MOST_DONE = 50_000
WARM_UP = 30
CALLS = 300
LEAST_CALLS = 30
MOST_SECONDS = 120
SELECTS = 3
"""SELECTs after each claim and submission, so that whatever else the machine does slows both."""
COLUMNS = (
    "tasks",
    "done by the annotator",
    "claim, median ms",
    "p95",
    "submit, median ms",
    "p95",
    "both",
    "SELECT by key, ms",
    "both in SELECTs",
    "calls",
)


def timed(action: Callable[[], object]) -> tuple[float, object]:
    start = time.perf_counter()
    answer = action()
    return 1000 * (time.perf_counter() - start), answer


@dataclass
class Times:
    """The milliseconds of each call."""

    claims: list[float] = field(default_factory=list)
    submits: list[float] = field(default_factory=list)
    selects: list[float] = field(default_factory=list)


def work(project: "Project", annotator: "User", *, calls: int) -> Times:
    """Claims and submits in turn, with SELECTs in between; makes fewer calls where they take long."""
    dice, times, deadline = random.Random(1), Times(), time.monotonic() + MOST_SECONDS
    first, last = ends(project)
    while len(times.claims) < calls and (time.monotonic() < deadline or len(times.claims) < LEAST_CALLS):
        claimed, submitted = claim_and_submit(project, annotator, dice)
        times.claims.append(claimed)
        times.submits.append(submitted)
        times.selects += [timed(partial(select_by_key, dice.randint(first, last)))[0] for _ in range(SELECTS)]
    return times


def ends(project: "Project") -> tuple[int, int]:
    """Returns the lowest and the highest id of the project's tasks, which were numbered in one go."""
    from annotator.models import Task

    tasks = Task.objects.filter(project=project)
    return tasks.earliest("pk").pk, tasks.latest("pk").pk


def select_by_key(key: int) -> object:
    """Reads a task by its primary key: the yardstick for what a call costs."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT id, external_id, state FROM annotator_task WHERE id = %s", [key])
        return cursor.fetchone()


def claim_and_submit(project: "Project", annotator: "User", dice: random.Random) -> tuple[float, float]:
    from django.utils import timezone

    from annotator import annotation, assignment
    from annotator.models import Response

    claimed, answer = timed(lambda: assignment.claim(project, annotator, now=timezone.now()))
    assert isinstance(answer, assignment.Claim)
    lease = answer.assignment
    assert lease, answer.reason
    responses = [
        {"id": response} for response in Response.objects.filter(task=lease.task_id).values_list("pk", flat=True)
    ]
    ratings = rated({"id": lease.task_id, "responses": responses}, dice)["ratings"]
    submission = annotation.Submission(
        {rating["response"]: annotation.ResponseRating(scores=rating["scores"]) for rating in ratings}
    )
    submitted, _ = timed(lambda: annotation.submit(lease.pk, submission, now=timezone.now()))
    return claimed, submitted


def row(project: "Project", annotator: "User", *, tasks: int, done: int) -> str:
    work(project, annotator, calls=WARM_UP)
    check_plans(project, annotator)
    times = work(project, annotator, calls=CALLS)
    yardstick = statistics.median(times.selects)
    both = statistics.median(times.claims) + statistics.median(times.submits)
    cells = " | ".join(
        f"{statistics.median(seconds):.2f} | {percentile(seconds, 0.95):.2f}"
        for seconds in (times.claims, times.submits)
    )
    compared = f"{both:.2f} | {yardstick:.3f} | {both / yardstick:.0f} | {len(times.claims)}"
    return f"| {tasks:,} | {done:,} | {cells} | {compared} |"


def check_plans(project: "Project", annotator: "User") -> None:
    """Asserts that the reads of a claim follow the indexes that were made for them, whatever the sizes."""
    from django.utils import timezone

    from annotator.assignment.claims import plans

    line, untouched = plans(project, annotator, now=timezone.now())
    assert "using task_in_line" in line, line
    assert "using task_untouched" in untouched, untouched
    assert "Seq Scan on annotator_task" not in line + untouched


def percentile(numbers: Sequence[float], share: float) -> float:
    return sorted(numbers)[int(share * len(numbers))]


def bench(tasks: int, *, crew: Mapping[str, "User"]) -> None:
    from benchmarks import filling

    newcomer, veteran = crew.values()
    project = filling.make_project("bench", crew=crew, tasks=tasks, characters=200)
    print(row(project, newcomer, tasks=tasks, done=0), flush=True)
    done = min(MOST_DONE, tasks // 2)
    # The tasks that the newcomer has begun are among these: whatever is begun, the veteran has had.
    filling.make_history(veteran, project, tasks=done)
    print(row(project, veteran, tasks=tasks, done=done), flush=True)


def main(sizes: Sequence[int]) -> None:
    with product.database():
        from benchmarks import filling

        crew = filling.make_crew(2)
        print("\n| " + " | ".join(COLUMNS) + " |\n" + len(COLUMNS) * "|---" + "|")
        for tasks in sizes:
            bench(tasks, crew=crew)


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]] or TASKS)
