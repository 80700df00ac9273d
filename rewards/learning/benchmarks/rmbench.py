"""RM-Bench (arXiv 2410.16184): three chosen and three rejected answers: concise, detailed, and detailed in markdown.

All nine comparisons count. Hard: the chosen answer has the plainer style; normal: the same; easy: the fancier one. A
domain is the mean of the three, the overall score the mean of the four domains.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rewards.learning.benchmarks.cases import (
    Benchmark,
    Case,
    JudgedCase,
    Measures,
    Row,
    conversation,
    groups_of,
    has_lists,
    over_all,
    texts,
)
from rewards.learning.data import Floats
from rewards.learning.intervals import bounds, drawn_means

DOMAINS = ("chat", "code", "math", "safety")
STYLES = 3
LEVELS = ("easy", "normal", "hard")


def case(row: Row) -> Case:
    """Returns the row as a case; raises KeyError or ValueError if it is not one of RM-Bench."""
    chosen, rejected = texts(row["chosen"]), texts(row["rejected"])
    if len(chosen) != STYLES or len(rejected) != STYLES:
        raise ValueError(f"chosen and rejected hold {STYLES} answers each, one a style")
    domain = str(row.get("domain") or "unnamed")
    known = next((name for name in DOMAINS if domain.startswith(name)), domain)
    return Case(str(row.get("id", "")), known, conversation(row["prompt"]), chosen, rejected)


def levels(good: Floats, bad: Floats) -> Floats:
    """[3]: the shares of right comparisons of one row, easy, normal and hard.

    good, bad [styles]: the rewards of the chosen and rejected answers, from the plainest style to the fanciest.
    """
    right = (good[:, None] > bad[None, :]).astype(np.float64)  # [chosen style, rejected style]
    # Below the diagonal the chosen answer has the fancier style (easy), above it the plainer one (hard).
    pairs = STYLES * (STYLES - 1) / 2
    return np.array([np.tril(right, -1).sum() / pairs, np.trace(right) / STYLES, np.triu(right, 1).sum() / pairs])


def result(row: JudgedCase) -> float:
    """Returns the mean of the row's three shares."""
    return float(levels(row.good, row.bad).mean())


def measure(rows: Sequence[JudgedCase]) -> Measures:
    """Returns the accuracy of every domain in the rows, and overall if none is missing."""
    # By domain [rows, 3]: the shares of right comparisons by level.
    by_domain = {
        name: np.array([levels(row.good, row.bad) for row in group]) for name, group in sorted(groups_of(rows).items())
    }
    drawn = {name: drawn_means(shares.mean(axis=1), seed=seed) for seed, (name, shares) in enumerate(by_domain.items())}
    domains = {
        name: {
            "accuracy": float(shares.mean()),
            "n": len(shares),
            **dict(zip(LEVELS, shares.mean(axis=0).tolist(), strict=True)),
            "intervals": {"accuracy": bounds(drawn[name])},
        }
        for name, shares in by_domain.items()
    }
    missing = [name for name in DOMAINS if name not in domains]
    overall: Measures = {"accuracy": None, "reason": f"no rows of the domains {', '.join(missing)}"}
    if not missing:
        accuracy = {level: float(np.mean([domains[name][level] for name in DOMAINS])) for level in LEVELS}
        spread = bounds(np.mean([drawn[name] for name in DOMAINS], axis=0))
        overall = {"accuracy": float(np.mean([*accuracy.values()])), **accuracy, "intervals": {"accuracy": spread}}
    return {"overall": overall, "domains": domains, "all": over_all(rows, result)}


BENCHMARK = Benchmark(
    "RM-Bench",
    "prompt, chosen (3 answers), rejected (3 answers), domain",
    lambda row: has_lists(row) and "num_correct" not in row and len(row["chosen"]) == len(row["rejected"]) == STYLES,
    case,
    result,
    measure,
)
