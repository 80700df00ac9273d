"""Measures what a claim and a submission cost as the number of tasks grows, and that of tasks an annotator has done.

`bench_scale growth [--tasks N ...]`. Each number of tasks has a process and a database of its own, which calls the
stages without HTTP. They take turns of a few calls, so that a machine that grows slower slows all of them. The
yardstick is a plain SELECT of a task by its primary key over the same connection. Tasks have a prompt of 300 characters
and two responses of 200.
"""

import json
import os
import random
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

from annotator.launch.install import ROOT
from benchmarks import product
from benchmarks.load import rated
from benchmarks.measuring import heading, options, quantile, row, timed

if TYPE_CHECKING:
    from annotator.models import Project, User

MOST_DONE = 50_000
WARM_UP = 30
TURNS, CALLS = 20, 30
FEWEST_TASKS = 2_000
SELECTS = 3
"""SELECTs after each claim and submission, so that whatever else the machine does slows both."""
Times = dict[str, list[float]]
"""The milliseconds of each claim, submission and SELECT."""


def work(project: "Project", annotator: "User", dice: random.Random, *, calls: int) -> Times:
    """Claims and submits in turn, with SELECTs in between."""
    from django.db import connection

    tasks = project.tasks.order_by("pk").values_list("pk", flat=True)
    first, last = tasks[0], tasks.reverse()[0]  # numbered in one go
    times: Times = {"claim": [], "submit": [], "select": []}
    with connection.cursor() as cursor:
        for _ in range(calls):
            claimed, submitted = claim_and_submit(project, annotator, dice)
            times["claim"].append(claimed)
            times["submit"].append(submitted)
            for _ in range(SELECTS):
                query = "SELECT id, external_id, state FROM annotator_task WHERE id = %s"
                times["select"].append(timed(partial(cursor.execute, query, [dice.randint(first, last)]))[0])
    return times


def claim_and_submit(project: "Project", annotator: "User", dice: random.Random) -> tuple[float, float]:
    from django.utils import timezone

    from annotator.models import Response
    from annotator.stages import annotation, assignment

    claimed, answer = timed(lambda: assignment.claim(project, annotator, now=timezone.now()))
    lease = answer.assignment
    assert lease, answer.reason
    responses = [{"id": pk} for pk in Response.objects.filter(task=lease.task_id).values_list("pk", flat=True)]
    ratings = rated({"id": lease.task_id, "responses": responses}, dice)["ratings"]
    of_responses = {one["response"]: annotation.ResponseRating(scores=one["scores"]) for one in ratings}
    submission = annotation.Submission(of_responses)
    submitted, _ = timed(lambda: annotation.submit(lease.pk, submission, now=timezone.now()))
    return claimed, submitted


def check_plans(project: "Project", annotator: "User") -> None:
    """Asserts that the reads of a claim follow the indexes that were made for them, whatever the sizes."""
    from django.utils import timezone

    from annotator.stages.assignment.claims import plans

    line, untouched = plans(project, annotator, now=timezone.now())
    assert "using task_in_line" in line, line
    assert "using task_untouched" in untouched, untouched
    assert "Seq Scan on annotator_task" not in line + untouched


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
                filling.make_history(veteran, project, tasks=min(MOST_DONE, tasks // 2))
            work(project, annotator, dice, calls=WARM_UP)
            check_plans(project, annotator)
            print("ready", file=answers, flush=True)
            while (line := sys.stdin.readline()).strip():
                print(json.dumps(work(project, annotator, dice, calls=int(line))), file=answers, flush=True)
            if not line:
                return


def turns(processes: "Mapping[int, subprocess.Popen[str]]") -> dict[int, Times]:
    """Has each database work in turn; returns its times by the number of its tasks."""

    def answer_of(process: "subprocess.Popen[str]", line: str = "") -> str:
        assert process.stdin
        assert process.stdout
        process.stdin.write(line)
        process.stdin.flush()
        answer = process.stdout.readline().strip()
        assert answer, "the process of a database has ended early"
        return answer

    times: dict[int, Times] = {tasks: {} for tasks in processes}
    for process in processes.values():
        assert answer_of(process) == "ready"
    for _ in range(TURNS):
        for tasks, process in processes.items():
            for kind, of_turn in json.loads(answer_of(process, f"{CALLS}\n")).items():
                times[tasks].setdefault(kind, []).extend(of_turn)
    for process in processes.values():
        assert process.stdin
        process.stdin.write("\n")
        process.stdin.flush()
    return times


def main(words: Sequence[str]) -> None:
    if words[:1] == ["--serve"]:
        serve(int(words[1]))
        return
    sizes = options(words, tasks=[10_000, 100_000, 1_000_000]).tasks
    if min(sizes) < FEWEST_TASKS:
        sys.exit(f"Name at least {FEWEST_TASKS:,} tasks: half of them are the veteran's, and each call takes another.")
    command = [sys.executable, "-m", "benchmarks.bench_scale", "growth", "--serve"]
    started = partial(subprocess.Popen, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with ExitStack() as stack:
        processes = {tasks: stack.enter_context(started([*command, str(tasks)])) for tasks in sizes}
        calls = ("claim, median ms", "p95", "submit, median ms", "p95", "both", "times that of the fewest tasks")
        heading("tasks", "done by the annotator", *calls, "SELECT by key, ms")
        for is_veteran in (False, True):
            of_all = turns(processes)
            both = {
                tasks: sum(statistics.median(of[kind]) for kind in ("claim", "submit")) for tasks, of in of_all.items()
            }
            for tasks, of in of_all.items():
                cells = [(statistics.median(of[kind]), quantile(of[kind], 0.95)) for kind in ("claim", "submit")]
                numbers = (*cells[0], *cells[1], both[tasks], both[tasks] / both[min(sizes)])
                done = min(MOST_DONE, tasks // 2) if is_veteran else 0
                select = f"{statistics.median(of['select']):.3f}"
                row(f"{tasks:,}", f"{done:,}", *(f"{number:.2f}" for number in numbers), select)
