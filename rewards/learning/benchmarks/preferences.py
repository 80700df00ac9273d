"""Plain pairs of a chosen and a rejected answer, as preference data comes: accuracy over all, and by source."""

from __future__ import annotations

from collections.abc import Sequence

from rewards.learning.benchmarks.cases import (
    Benchmark,
    Case,
    Judged,
    Measures,
    Row,
    accuracy,
    conversation,
    groups_of,
    has_texts,
    over_all,
    text,
)


def case(row: Row) -> Case:
    group = str(row.get("source") or row.get("subset") or "unnamed")
    return Case(
        str(row.get("id", "")), group, conversation(row["prompt"]), (text(row["chosen"]),), (text(row["rejected"]),)
    )


def result(row: Judged) -> float:
    return float(row.good[0] > row.bad[0])


def measure(rows: Sequence[Judged]) -> Measures:
    sources = {name: accuracy(group, result) for name, group in sorted(groups_of(rows).items())}
    every = over_all(rows, result)
    overall = {"accuracy": every["accuracy"], "n": every["n"], "intervals": every["intervals"]}
    return {"overall": overall, "sources": sources, "all": every}


BENCHMARK = Benchmark("preference pairs", "prompt, chosen, rejected", has_texts, case, result, measure)
