"""Submissions a second of rated segments beside those of plain ratings, over HTTP, with the whole product running.

`bench_scale segments [--tasks N] [--segments S] [--seconds T] [--rounds R]`. Tasks of one project have
two responses of S segments, each rated by five aspects; those of the other have two responses of the same length, each
rated by five attributes. The two are measured by turns, with 32 annotators who ask for the next task with each
submission. `bench_scale segmenting` measures how fast texts are cut.
"""

from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING

from benchmarks import product
from benchmarks.bench_annotation import ANNOTATORS, Bench, call_cell, troubles

if TYPE_CHECKING:
    from annotator.models import Project, User

SENTENCE = "This sentence says as much as others. "
KINDS = {"plain": False, "segments": True}


def make(kind: str, *, crew: "Mapping[str, User]", tasks: int, segments: int) -> "Project":
    """Replaces all projects by one whose tasks are rated as wholes or by segments."""
    from annotator.models import Response, Rubric
    from annotator.segmenting import cut
    from benchmarks import filling

    project = filling.make_project("bench", crew=crew, tasks=tasks, characters=segments * len(SENTENCE))
    if KINDS[kind]:
        text = (SENTENCE * segments).strip()
        ranges = [list(one) for one in cut(text)]
        assert len(ranges) == segments
        Response.objects.update(text=text, segments=ranges)
        project.rubric = Rubric.objects.get(key="helpsteer2d", project=None)
        project.save(update_fields=["rubric"])
        filling.settle()
    return project


def measured(kind: str, *, crew: "Mapping[str, User]", tasks: int, segments: int, seconds: float) -> float:
    """Prints a row of the table and returns the submissions a second."""
    make(kind, crew=crew, tasks=tasks, segments=segments)
    runs = Bench(list(crew), seconds)
    with product.running():
        runs.loaded(carry=True, annotators=ANNOTATORS, seconds=3)
        outcome = runs.loaded(carry=True, annotators=ANNOTATORS, seconds=seconds)
    rate = outcome.stored / outcome.seconds
    print(
        f"| {kind} | {rate:.1f} | {call_cell(outcome.calls.get('submit'), ANNOTATORS)} | {troubles(outcome)} |",
        flush=True,
    )
    return rate


def main(words: Sequence[str]) -> None:
    parser = ArgumentParser(prog="bench_scale segments")
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--segments", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args(words)
    print(f"{chosen.tasks:,} tasks of two responses, {chosen.segments} segments each, {chosen.seconds:g} s a turn.\n")
    print("| ratings | submissions a second | p50 / p95 / p99 in ms | errors |\n|---|---|---|---|")
    rates: dict[str, list[float]] = {kind: [] for kind in KINDS}
    with product.database():
        from benchmarks import filling

        crew = filling.make_crew(ANNOTATORS)
        for _ in range(chosen.rounds):
            for kind, of_kind in rates.items():
                of_kind.append(
                    measured(kind, crew=crew, tasks=chosen.tasks, segments=chosen.segments, seconds=chosen.seconds)
                )
    plain, segmented = (median(rates[kind]) for kind in KINDS)
    print(f"\nMedians: {plain:.1f} plain, {segmented:.1f} by segments, {segmented / plain:.2f} of it.")
