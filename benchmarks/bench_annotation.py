"""Annotations a second over HTTP: C annotators with tokens claim and submit without thinking time.

`python -m benchmarks.bench_annotation [--tasks N ...] [--annotators C ...] [--seconds S]`. Tasks have a prompt of 300
characters and two responses of 1,500 (of 200 from 100,000 tasks on, or the texts would fill the disk); each response
gets five scores. Overlap 3, escalating to 5.

With `--soak S` the largest number of annotators works for S seconds on the largest number of tasks instead, and what
the processes of each kind hold is watched. `bench_peers` has a peer work beside it.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from annotator.launch.install import ROOT
from benchmarks import product
from benchmarks.load import Outcome, Plan
from benchmarks.measuring import heading, options, row
from benchmarks.processes import POSTGRES, WEB, WORKERS, Memory, machine_seconds, worked_seconds

if TYPE_CHECKING:
    from annotator.models import Project, User

ANNOTATORS = 32
WARM_UP_SECONDS = 3
WAYS = {"next, then submit": False, "submit with next": True}
KINDS = {"server": WEB, "PostgreSQL": POSTGRES, "workers": WORKERS}
CALLS = ("way", "annotators", "annotations a second", "next", "submit", "errors")
COLUMNS = (*CALLS, *KINDS, "these annotators", "other programs")


@dataclass
class Bench:
    """Runs the load. `acknowledged` counts the submissions that the server took since the tasks were filled in."""

    tokens: Sequence[str]
    acknowledged: int = 0

    def tell(self, *, carry: bool, annotators: int, seconds: float) -> None:
        """Warms up and measures; prints a row of the table."""
        self.loaded(carry=carry, annotators=annotators, seconds=min(WARM_UP_SECONDS, seconds))
        began, before = time.monotonic(), used()
        outcome = self.loaded(carry=carry, annotators=annotators, seconds=seconds)
        taken = [after - at_first for after, at_first in zip(used(), before, strict=True)]
        *own, machine = taken
        others = max(0, machine - sum(own)) / (time.monotonic() - began)
        costs = (f"{1000 * cost / max(1, outcome.stored):.1f}" for cost in own)
        way = next(name for name, carrier in WAYS.items() if carrier == carry)
        calls = (outcome.cell(name, annotators) for name in ("next", "submit"))
        row(way, annotators, f"{outcome.rate():.1f}", *calls, outcome.troubles(), *costs, f"{others:.2f}")

    def loaded(self, *, carry: bool, annotators: int, seconds: float) -> Outcome:
        outcome = carried_out(Plan(product.PORT, "bench", self.tokens[:annotators], seconds, carry))
        self.acknowledged += outcome.stored
        return outcome


def used() -> list[float]:
    """Returns the processor time so far: of each kind of process, of annotators who have ended, of the machine."""
    times = os.times()
    annotators = times.children_user + times.children_system
    return [*(worked_seconds(kind) for kind in KINDS.values()), annotators, machine_seconds()]


def carried_out(plan: Plan, *, program: Sequence[str] = ("benchmarks.load",)) -> Outcome:
    """Has a process of its own carry out the plan, in the product or in a peer."""
    line = [sys.executable, "-m", *program]
    text = json.dumps(asdict(plan))
    done = subprocess.run(line, input=text, stdout=subprocess.PIPE, text=True, cwd=ROOT, check=True)
    return Outcome(**json.loads(done.stdout))


def books(project: "Project", acknowledged: int) -> str:
    """Says what the database holds in the end beside what the server acknowledged: a lost annotation would show."""
    from annotator.models import Annotation, Task

    stored = Annotation.objects.current().for_project(project.pk).count()
    tasks = Task.objects.filter(project=project)
    complete = tasks.filter(state=Task.State.COMPLETE).count()
    escalated = tasks.filter(slots_wanted__gt=project.base_annotators).count()
    counts = f"{complete:,} tasks complete, {escalated:,} of all tasks escalated."
    return f"{acknowledged:,} annotations acknowledged, {stored:,} stored; {counts}"


def bench(tasks: int, *, crew: Mapping[str, "User"], annotators: Sequence[int], seconds: float) -> None:
    """Measures both ways over the same tasks, which are filled in again for each."""
    from benchmarks import filling

    characters = 1500 if tasks < 100_000 else 200
    print(
        f"\n{tasks:,} tasks, responses of {characters:,} characters, {seconds:g} s each. Calls: p50 / p95 / p99 in ms."
    )
    print("Then processor time in ms an annotation; of other programs, processors in use.")
    heading(*COLUMNS)
    notes = []
    for way, carry in WAYS.items():
        project = filling.make_project("bench", crew=crew, tasks=tasks, characters=characters)
        runs = Bench(list(crew))
        with product.running():
            for number in annotators:
                runs.tell(carry=carry, annotators=number, seconds=seconds)
        notes.append(f"{way}: {books(project, runs.acknowledged)}")
    print("\n" + "\n".join(notes), flush=True)


def soak(tasks: int, *, crew: Mapping[str, "User"], annotators: int, seconds: float) -> None:
    """Has annotators work for a long time; prints what the processes of each kind held meanwhile."""
    from benchmarks import filling

    filling.make_project("bench", crew=crew, tasks=tasks, characters=200)
    with product.running(), ExitStack() as watching:
        held = {name: Memory(kind) for name, kind in KINDS.items()}
        held["PostgreSQL without its cache"] = Memory(POSTGRES, shared=False)
        for memory in held.values():
            watching.enter_context(memory.watched())
        heading(*COLUMNS)
        Bench(list(crew)).tell(carry=True, annotators=annotators, seconds=seconds)
    heading("processes", "MB at most", "growth after the first fifth")
    for name, memory in held.items():
        row(name, *memory.cells())


def main(words: Sequence[str]) -> None:
    given = options(words, tasks=[10_000, 1_000_000], annotators=[1, 8, ANNOTATORS], seconds=20.0, soak=0.0)
    with product.database():
        from benchmarks import filling

        crew = filling.make_crew(max(given.annotators))
        if given.soak:
            soak(max(given.tasks), crew=crew, annotators=max(given.annotators), seconds=given.soak)
            return
        for tasks in given.tasks:
            bench(tasks, crew=crew, annotators=given.annotators, seconds=given.seconds)


if __name__ == "__main__":
    main(sys.argv[1:])
