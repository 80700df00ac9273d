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
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from annotator.launch.install import ROOT
from benchmarks import product
from benchmarks.load import Call, Outcome, Plan
from benchmarks.resident import Memory

if TYPE_CHECKING:
    from annotator.models import Project, User

ANNOTATORS = 32
WARM_UP_SECONDS = 3
WAYS = {"next, then submit": False, "submit with next": True}
COLUMNS = (
    "way",
    "annotators",
    "annotations a second",
    "next",
    "submit",
    "errors",
    "server",
    "PostgreSQL",
    "workers",
    "these annotators",
    "other programs",
)
TICKS = os.sysconf("SC_CLK_TCK")
WORDS = {"server": "annotator.launch.webserver", "postgres": "/postgres", "workers": "celery"}
"""A part of the command line by which each kind of process is known."""


# What a run costs --------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Usage:
    """Seconds of processor time by kind of process, used within `seconds` by the clock."""

    seconds: float
    server: float
    postgres: float
    workers: float
    load: float
    others: float

    def cells(self, annotations: int) -> str:
        """Returns milliseconds per annotation, and for other programs, which only disturb, the processors in use."""
        own = (self.server, self.postgres, self.workers, self.load)
        milliseconds = " | ".join(f"{1000 * cost / max(1, annotations):.1f}" for cost in own)
        return f"{milliseconds} | {self.others / self.seconds:.2f}"


class Meter:
    """Reads from /proc how much processor time our children have used since this object was made."""

    def __init__(self) -> None:
        self.began, self.before = time.monotonic(), self.ticks()

    def usage(self, load: float) -> Usage:
        """Returns the usage so far. `load` is that of the annotators' process, which has ended and left /proc."""
        used = Counter(self.ticks())
        used.subtract(self.before)
        names = ("machine", "server", "postgres", "workers")
        machine, server, postgres, workers = (used[name] / TICKS for name in names)
        others = max(0, machine - server - postgres - workers - load)
        return Usage(time.monotonic() - self.began, server, postgres, workers, load, others)

    def ticks(self) -> Counter[str]:
        busy = [int(part) for part in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
        # Of the line's fields the fourth is idle time and the fifth is waiting for a disk.
        ticks = Counter({"machine": sum(busy) - busy[3] - busy[4]})
        for pid in children(os.getpid()):
            command = Path(f"/proc/{pid}/cmdline").read_text()
            name = next((name for name, word in WORDS.items() if word in command), "other")
            ticks[name] += sum(_ticks(descendant) for descendant in [pid, *descendants(pid)])
        return ticks


def children(pid: int) -> list[int]:
    """Returns the ids of the process' children; an empty list if it has ended."""
    try:
        lists = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children")]
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [int(child) for children in lists for child in children.split()]


def descendants(pid: int) -> Iterator[int]:
    for child in children(pid):
        yield child
        yield from descendants(child)


def _ticks(pid: int) -> int:
    """Returns the ticks of the process and of its children that have ended; 0 if it has ended itself."""
    try:
        # A program's name may hold spaces and brackets: the fields begin after the last bracket.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return sum(int(field) for field in fields[11:15])


# The runs ----------------------------------------------------------------------------------------------------
@dataclass
class Bench:
    """Runs the load. `acknowledged` counts the submissions that the server took since the tasks were filled in."""

    tokens: Sequence[str]
    seconds: float
    acknowledged: int = 0

    def row(self, *, carry: bool, annotators: int) -> str:
        """Warms up and measures; returns a row of the table."""
        self.loaded(carry=carry, annotators=annotators, seconds=min(WARM_UP_SECONDS, self.seconds))
        meter, used_before = Meter(), _finished_children()
        outcome = self.loaded(carry=carry, annotators=annotators, seconds=self.seconds)
        usage = meter.usage(_finished_children() - used_before)
        rate = outcome.stored / outcome.seconds
        calls = " | ".join(call_cell(outcome.calls.get(name), annotators) for name in ("next", "submit"))
        way = next(name for name, carrier in WAYS.items() if carrier == carry)
        return f"| {way} | {annotators} | {rate:.1f} | {calls} | {troubles(outcome)} | {usage.cells(outcome.stored)} |"

    def loaded(self, *, carry: bool, annotators: int, seconds: float) -> Outcome:
        outcome = carried_out(Plan(product.PORT, "bench", self.tokens[:annotators], seconds, carry))
        self.acknowledged += outcome.stored
        return outcome


def carried_out(plan: Plan, *, peer: str = "") -> Outcome:
    """Has a process of its own carry out the plan, in the product or in a peer."""
    load = ["benchmarks.peers.load", peer] if peer else ["benchmarks.load"]
    done = subprocess.run(
        [sys.executable, "-m", *load],
        input=json.dumps(asdict(plan)),
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        check=True,
    )
    answer = json.loads(done.stdout)
    return Outcome(**answer | {"calls": {name: Call(**call) for name, call in answer["calls"].items()}})


def _finished_children() -> float:
    times = os.times()
    return times.children_user + times.children_system


def call_cell(call: Call | None, annotators: int) -> str:
    """Returns the quantiles of the calls; empty where each annotator called only once, to begin with."""
    return f"{call.p50:.1f} / {call.p95:.1f} / {call.p99:.1f}" if call and call.count > annotators else ""


def troubles(outcome: Outcome) -> str:
    """Returns the errors by kind, and how often there was no task."""
    empty = {"no task": outcome.empty} if outcome.empty else {}
    return ", ".join(f"{number} x {name}" for name, number in (outcome.errors | empty).items()) or "0"


def books(project: "Project", acknowledged: int) -> str:
    """Says what the database holds in the end beside what the server acknowledged: a lost annotation would show."""
    from annotator.models import Annotation, Task

    stored = Annotation.objects.current().for_project(project.pk).count()
    tasks = Task.objects.filter(project=project)
    complete = tasks.filter(state=Task.State.COMPLETE).count()
    escalated = tasks.filter(slots_wanted__gt=project.base_annotators).count()
    return (
        f"{acknowledged:,} annotations acknowledged, {stored:,} stored; "
        f"{complete:,} tasks complete, {escalated:,} of all tasks escalated."
    )


def bench(tasks: int, *, crew: Mapping[str, "User"], annotators: Sequence[int], seconds: float) -> None:
    """Measures both ways over the same tasks, which are filled in again for each."""
    from benchmarks import filling

    characters = 1500 if tasks < 100_000 else 200
    print(f"\n{tasks:,} tasks, responses of {characters:,} characters, {seconds:g} s each.")
    print(
        "Calls: p50 / p95 / p99 in ms. Then processor time in ms an annotation; of other programs, processors in use.\n"
    )
    print("| " + " | ".join(COLUMNS) + " |\n" + len(COLUMNS) * "|---" + "|")
    notes = []
    for way, carry in WAYS.items():
        project = filling.make_project("bench", crew=crew, tasks=tasks, characters=characters)
        runs = Bench(list(crew), seconds)
        with product.running():
            for number in annotators:
                print(runs.row(carry=carry, annotators=number), flush=True)
        notes.append(f"{way}: {books(project, runs.acknowledged)}")
    print("\n" + "\n".join(notes), flush=True)


def soak(tasks: int, *, crew: Mapping[str, "User"], annotators: int, seconds: float) -> None:
    """Has annotators work for a long time; prints what the processes of each kind held meanwhile."""
    from benchmarks import filling

    filling.make_project("bench", crew=crew, tasks=tasks, characters=200)
    runs = Bench(list(crew), seconds)
    with product.running(), ExitStack() as watching:
        held = {name: Memory(word.strip("/").encode()) for name, word in WORDS.items()}
        held["postgres without its cache"] = Memory(b"postgres", shared=False)
        for memory in held.values():
            watching.enter_context(memory.watched())
        row = runs.row(carry=True, annotators=annotators)
    print("\n| " + " | ".join(COLUMNS) + " |\n" + len(COLUMNS) * "|---" + f"|\n{row}\n")
    print("| processes | MB at most | growth after the first fifth |\n|---|---|---|")
    for name, memory in held.items():
        print(f"| {name} | {memory.peak / 10**6:.0f} | {memory.growth():.1%} |")


def main(words: Sequence[str]) -> None:
    parser = ArgumentParser(prog="bench_annotation")
    parser.add_argument("--tasks", type=int, nargs="+", default=[10_000, 1_000_000])
    parser.add_argument("--annotators", type=int, nargs="+", default=[1, 8, 32], choices=range(1, ANNOTATORS + 1))
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--soak", type=float, metavar="SECONDS")
    chosen = parser.parse_args(words)
    with product.database():
        from benchmarks import filling

        crew = filling.make_crew(ANNOTATORS)
        if chosen.soak:
            soak(max(chosen.tasks), crew=crew, annotators=max(chosen.annotators), seconds=chosen.soak)
            return
        for tasks in chosen.tasks:
            bench(tasks, crew=crew, annotators=chosen.annotators, seconds=chosen.seconds)


if __name__ == "__main__":
    main(sys.argv[1:])
