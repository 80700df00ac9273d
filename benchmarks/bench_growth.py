"""What a claim and a submission cost as the tasks grow in number, and the tasks that an annotator has done.

`python -m benchmarks.bench_growth [TASKS ...]`. Calls the stages in this process, without HTTP. The yardstick is a
plain SELECT of a task by its primary key over the same connection. Tasks have a prompt of 300 characters and two
responses of 200.
"""

import random
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from benchmarks import product
from benchmarks.load import rated

if TYPE_CHECKING:
    from annotator.models import Project, User

TASKS = (10_000, 100_000, 1_000_000)
MOST_DONE = 50_000
WARM_UP = 30
CALLS = 300
MOST_SECONDS = 120
SELECTS = 1000
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


def select_by_key(project: "Project") -> float:
    """The median's milliseconds of the yardstick."""
    from django.db import connection

    from annotator.models import Task

    last = Task.objects.filter(project=project).latest("pk").pk
    first = Task.objects.filter(project=project).earliest("pk").pk
    dice = random.Random(1)

    def one() -> object:
        cursor.execute("SELECT id, external_id, state FROM annotator_task WHERE id = %s", [dice.randint(first, last)])
        return cursor.fetchone()

    with connection.cursor() as cursor:
        return statistics.median(timed(one)[0] for _ in range(SELECTS))


def work(project: "Project", annotator: "User") -> tuple[list[float], list[float]]:
    """Milliseconds of each claim and of each submission, after a warm-up; fewer of them where they take long."""
    dice, claims, submits = random.Random(1), list[float](), list[float]()
    deadline = time.monotonic() + MOST_SECONDS
    while len(claims) < WARM_UP + CALLS and (time.monotonic() < deadline or len(claims) < 2 * WARM_UP):
        claimed, submitted = claim_and_submit(project, annotator, dice)
        claims.append(claimed)
        submits.append(submitted)
    return claims[WARM_UP:], submits[WARM_UP:]


def claim_and_submit(project: "Project", annotator: "User", dice: random.Random) -> tuple[float, float]:
    from django.utils import timezone

    from annotator import annotation, assignment
    from annotator.models import Response

    claimed, answer = timed(lambda: assignment.claim(project, annotator, now=timezone.now()))
    assert isinstance(answer, assignment.Claim)
    held = answer.assignment
    assert held, answer.reason
    responses = [{"id": each} for each in Response.objects.filter(task=held.task_id).values_list("pk", flat=True)]
    ratings = rated({"id": held.task_id, "responses": responses}, dice)["ratings"]
    sent = annotation.Submission(
        {each["response"]: annotation.ResponseRating(scores=each["scores"]) for each in ratings}
    )
    submitted, _ = timed(lambda: annotation.submit(held.pk, sent, now=timezone.now()))
    return claimed, submitted


def row(project: "Project", annotator: "User", *, tasks: int, done: int) -> str:
    yardstick = select_by_key(project)
    claims, submits = work(project, annotator)
    both = statistics.median(claims) + statistics.median(submits)
    cells = " | ".join(f"{statistics.median(each):.2f} | {percentile(each, 0.95):.2f}" for each in (claims, submits))
    return f"| {tasks:,} | {done:,} | {cells} | {both:.2f} | {yardstick:.3f} | {both / yardstick:.0f} | {len(claims)} |"


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
