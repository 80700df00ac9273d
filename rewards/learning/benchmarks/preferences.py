"""Plain pairs of a chosen and a rejected answer, as preference data comes: accuracy over all, and by source."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

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
from rewards.learning.data import Turn

SPEAKERS = {"Human": "user", "Assistant": "assistant"}
_TURN = re.compile(r"(?:^|\n\n)(Human|Assistant):")


def case(row: Row) -> Case:
    group = str(row.get("source") or row.get("subset") or "unnamed")
    good, bad = text(row["chosen"]), text(row["rejected"])
    return Case(str(row.get("id", "")), group, turns(row["prompt"]), (good,), (bad,))


def turns(prompt: Any) -> tuple[Turn, ...]:
    """Of a text that begins like a transcript of Anthropic's each turn; an empty last one is left out."""
    if not isinstance(prompt, str) or not prompt.lstrip().startswith("Human:"):
        return conversation(prompt)
    _, *parts = _TURN.split(prompt.strip())
    spoken = zip(parts[::2], parts[1::2], strict=True)
    return tuple(Turn(SPEAKERS[who], said.strip()) for who, said in spoken if said.strip()) or conversation(prompt)


def result(row: Judged) -> float:
    return float(row.good[0] > row.bad[0])


def measure(rows: Sequence[Judged]) -> Measures:
    sources = {name: accuracy(group, result) for name, group in sorted(groups_of(rows).items())}
    every = over_all(rows, result)
    overall = {"accuracy": every["accuracy"], "n": every["n"], "intervals": every["intervals"]}
    return {"overall": overall, "sources": sources, "all": every}


BENCHMARK = Benchmark("preference pairs", "prompt, chosen, rejected", has_texts, case, result, measure)
