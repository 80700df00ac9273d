"""Plain pairs of a chosen and a rejected answer: the accuracy over all of them, and by source."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from rewards.learning.benchmarks.cases import (
    Benchmark,
    Case,
    JudgedCase,
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
    """Returns the row as a case; raises KeyError or ValueError if it is not a pair."""
    group = str(row.get("source") or row.get("subset") or "unnamed")
    good, bad = text(row["chosen"]), text(row["rejected"])
    return Case(str(row.get("id", "")), group, turns(row["prompt"]), (good,), (bad,))


def turns(prompt: Any) -> tuple[Turn, ...]:
    """Returns the turns of a prompt; a text in the form of Anthropic's transcripts is split at its speakers.

    An empty last turn, which asks for the answer, is left out.
    """
    if not isinstance(prompt, str) or not prompt.lstrip().startswith("Human:"):
        return conversation(prompt)
    _, *parts = _TURN.split(prompt.strip())
    spoken = zip(parts[::2], parts[1::2], strict=True)
    return tuple(Turn(SPEAKERS[who], text.strip()) for who, text in spoken if text.strip()) or conversation(prompt)


def result(row: JudgedCase) -> float:
    """Returns 1 for a right pair; a tie is wrong."""
    return float(row.good[0] > row.bad[0])


def measure(rows: Sequence[JudgedCase]) -> Measures:
    """Returns the accuracy of all pairs and of every source."""
    sources = {name: accuracy(group, result) for name, group in sorted(groups_of(rows).items())}
    every = over_all(rows, result)
    overall = {"accuracy": every["accuracy"], "n": every["n"], "intervals": every["intervals"]}
    return {"overall": overall, "sources": sources, "all": every}


BENCHMARK = Benchmark("preference pairs", "prompt, chosen, rejected", has_texts, case, result, measure)
