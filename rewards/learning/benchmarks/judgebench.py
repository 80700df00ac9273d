"""JudgeBench (arXiv 2410.12784): pairs with one correct answer, by the kind of the question's source.

The overall score is over all pairs. The benchmark's own script takes a tie for B>A; here a tie is wrong, and counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rewards.learning.benchmarks.cases import (
    Benchmark,
    Case,
    JudgedCase,
    Measures,
    Row,
    accuracy,
    conversation,
    groups_of,
    over_all,
    text,
)

CATEGORIES: Mapping[str, str] = {
    "mmlu-pro": "knowledge",
    "livebench-reasoning": "reasoning",
    "livebench-math": "math",
    "livecodebench": "coding",
}
"""The category by the beginning of the source."""


def case(row: Row) -> Case:
    """Returns the row as a case; raises KeyError or ValueError if it is not one of JudgeBench."""
    answers = {"A>B": ("response_A", "response_B"), "B>A": ("response_B", "response_A")}
    if row["label"] not in answers:
        raise ValueError(f"label is A>B or B>A, not {str(row['label'])[:40]!r}")
    good, bad = (text(row[name]) for name in answers[row["label"]])
    source = str(row.get("source", ""))
    group = next((name for start, name in CATEGORIES.items() if source.startswith(start)), source or "unnamed")
    return Case(str(row.get("pair_id", "")), group, conversation(row["question"]), (good,), (bad,))


def result(row: JudgedCase) -> float:
    """Returns 1 for a right pair; a tie is wrong."""
    return float(row.good[0] > row.bad[0])


def measure(rows: Sequence[JudgedCase]) -> Measures:
    """Returns the accuracy of all pairs and of every category; overall only if no category is missing."""
    categories = {name: accuracy(group, result) for name, group in sorted(groups_of(rows).items())}
    every = over_all(rows, result)
    overall: Measures = {"accuracy": every["accuracy"], "n": every["n"], "intervals": every["intervals"]}
    missing = [name for name in CATEGORIES.values() if name not in categories]
    if missing:
        overall = {"accuracy": None, "reason": f"no pairs of {', '.join(missing)}"}
    return {"overall": overall, "categories": categories, "all": every}


BENCHMARK = Benchmark(
    "JudgeBench",
    "question, response_A, response_B, label, source",
    lambda row: {"question", "response_A", "response_B", "label"} <= set(row),
    case,
    result,
    measure,
)
