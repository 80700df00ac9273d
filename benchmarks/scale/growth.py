"""Measures what a claim and a submission cost as the number of tasks grows, and that of tasks an annotator has done.

`bench_scale growth [TASKS ...]`. Each number of tasks has a process and a database of its own, which
calls the stages without HTTP. They take turns of a few calls, so that a machine that grows slower slows all of them.
The yardstick is a plain SELECT of a task by its primary key over the same connection. Tasks have a prompt of 300
characters and two responses of 200.
"""

import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from annotator.launch.install import ROOT
from benchmarks import product
from benchmarks.load import rated

if TYPE_CHECKING:
    from annotator.models import Project, User

TASKS = (10_000, 100_000, 1_000_000)
MOST_DONE = 50_000
WARM_UP = 30
TURNS, CALLS = 20, 30
FEWEST_TASKS = 2_000
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
    "times that of the fewest tasks",
    "SELECT by key, ms",
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

    def add(self, turn: "Times") -> None:
        self.claims += turn.claims
        self.submits += turn.submits
        self.selects += turn.selects


def work(project: "Project", annotator: "User", dice: random.Random, *, calls: int) -> Times:
    """Claims and submits in turn, with SELECTs in between."""
    times = Times()
    first, last = ends(project)
    for _ in range(calls):
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


# One database ------------------------------------------------------------------------------------------------


def serve(tasks: int) -> None:
    """Works in a database of so many tasks, so many calls for each line of the input; answers with their Times.

    The first turns are the newcomer's, those after an empty line the veteran's, who has rated many of the tasks. It
    ends when its input does.
    """
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what else is printed is no answer
    with product.database():
        from benchmarks import filling

        dice, crew = random.Random(1), filling.make_crew(2)
        newcomer, veteran = crew.values()
        project = filling.make_project("bench", crew=crew, tasks=tasks, characters=200)
        for annotator in (newcomer, veteran):
            if annotator == veteran:
                # Of other tasks than the newcomer's, which are begun and wait for the veteran.
                filling.make_history(veteran, project, tasks=done_by_veteran(tasks))
            work(project, annotator, dice, calls=WARM_UP)
            check_plans(project, annotator)
            print("ready", file=answers, flush=True)
            while (line := sys.stdin.readline()).strip():
                times = work(project, annotator, dice, calls=int(line))
                print(json.dumps(asdict(times)), file=answers, flush=True)
            if not line:
                return


def done_by_veteran(tasks: int) -> int:
    return min(MOST_DONE, tasks // 2)


# All of them in turn -----------------------------------------------------------------------------------------


def start_server(tasks: int) -> "subprocess.Popen[str]":
    """Starts a process with a database of so many tasks; it ends when its input does."""
    command = [sys.executable, "-m", "benchmarks.bench_scale", "growth", "--serve", str(tasks)]
    return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def send(process: "subprocess.Popen[str]", line: str) -> None:
    assert process.stdin
    process.stdin.write(line + "\n")
    process.stdin.flush()


def answer_of(process: "subprocess.Popen[str]") -> str:
    assert process.stdout
    answer = process.stdout.readline().strip()
    assert answer, "the process of a database has ended early"
    return answer


def turns(processes: Mapping[int, "subprocess.Popen[str]"]) -> dict[int, Times]:
    """Has each database work in turn; returns its times by the number of its tasks."""
    times = {tasks: Times() for tasks in processes}
    for process in processes.values():
        assert answer_of(process) == "ready"
    for _ in range(TURNS):
        for tasks, process in processes.items():
            send(process, str(CALLS))
            times[tasks].add(Times(**json.loads(answer_of(process))))
    for process in processes.values():
        send(process, "")
    return times


def row(times: Times, *, tasks: int, done: int, of_smallest: float) -> str:
    yardstick = statistics.median(times.selects)
    cells = " | ".join(
        f"{statistics.median(milliseconds):.2f} | {percentile(milliseconds, 0.95):.2f}"
        for milliseconds in (times.claims, times.submits)
    )
    compared = f"{both(times):.2f} | {both(times) / of_smallest:.2f} | {yardstick:.3f} | {len(times.claims)}"
    return f"| {tasks:,} | {done:,} | {cells} | {compared} |"


def both(times: Times) -> float:
    return statistics.median(times.claims) + statistics.median(times.submits)


def main(words: Sequence[str]) -> None:
    if words[:1] == ["--serve"]:
        serve(int(words[1]))
        return
    sizes = [int(word) for word in words] or [*TASKS]
    if min(sizes) < FEWEST_TASKS:
        sys.exit(f"Name at least {FEWEST_TASKS:,} tasks: half of them are the veteran's, and each call takes another.")
    with ExitStack() as stack:
        processes = {tasks: stack.enter_context(start_server(tasks)) for tasks in sizes}
        print("\n| " + " | ".join(COLUMNS) + " |\n" + len(COLUMNS) * "|---" + "|")
        for is_veteran in (False, True):
            of_all = turns(processes)
            of_smallest = both(of_all[min(sizes)])
            for tasks, times in of_all.items():
                done = done_by_veteran(tasks) if is_veteran else 0
                print(row(times, tasks=tasks, done=done, of_smallest=of_smallest), flush=True)
