"""Submissions a second of rated segments beside those of plain ratings, over HTTP, with the whole product running.

`bench_scale segments [--tasks N] [--segments S] [--seconds T] [--rounds R]`. Tasks of one project have two responses of
S segments, each rated by five aspects; those of the other have two responses of the same length, each rated by five
attributes. The two are measured by turns, with 32 annotators who ask for the next task with each submission.
"""

from collections.abc import Sequence
from statistics import median

from benchmarks import product
from benchmarks.bench_annotation import ANNOTATORS, WARM_UP_SECONDS, Bench
from benchmarks.measuring import heading, options, row

SENTENCE = "This sentence says as much as others. "


def segment(segments: int) -> None:
    """Has the only project's tasks rated by segments."""
    from annotator.models import Project, Response, Rubric
    from annotator.stages.segmenting import cut
    from benchmarks.filling import settle

    text = (SENTENCE * segments).strip()
    ranges = [list(one) for one in cut(text)]
    assert len(ranges) == segments
    Response.objects.update(text=text, segments=ranges)
    Project.objects.update(rubric=Rubric.objects.get(key="helpsteer2d", project=None))
    settle()


def main(words: Sequence[str]) -> None:
    given = options(words, tasks=10_000, segments=40, seconds=20.0, rounds=3)
    print(f"{given.tasks:,} tasks of two responses, {given.segments} segments each, {given.seconds:g} s a turn.")
    rates: dict[str, list[float]] = {"plain": [], "segments": []}
    with product.database():
        from benchmarks import filling

        crew = filling.make_crew(ANNOTATORS)
        heading("ratings", "submissions a second", "p50 / p95 / p99 in ms", "errors")
        for kind in given.rounds * list(rates):
            length = given.segments * len(SENTENCE)
            filling.make_project("bench", crew=crew, tasks=given.tasks, characters=length)
            if kind == "segments":
                segment(given.segments)
            runs = Bench(list(crew))
            with product.running():
                runs.loaded(carry=True, annotators=ANNOTATORS, seconds=WARM_UP_SECONDS)
                outcome = runs.loaded(carry=True, annotators=ANNOTATORS, seconds=given.seconds)
            rates[kind].append(outcome.rate())
            row(kind, f"{outcome.rate():.1f}", outcome.cell("submit", ANNOTATORS), outcome.troubles())
    plain, segmented = (median(of) for of in rates.values())
    print(f"\nMedians: {plain:.1f} plain, {segmented:.1f} by segments, {segmented / plain:.2f} of it.")
