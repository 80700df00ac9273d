"""Rows of each published format, in a line each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rewards.learning.benchmarks.cases import Case, JudgedCase
from rewards.learning.data import Turn

Row = dict[str, Any]


def pair_row(subset: str = "llmbar-natural", **fields: Any) -> Row:
    return {"id": "1", "prompt": "Why?", "chosen": "Because of it.", "rejected": "No.", "subset": subset, **fields}


def best_of_four_row(subset: str = "Math", **fields: Any) -> Row:
    common = {"id": "1", "prompt": "Why?", "chosen": ["Because."], "rejected": ["No.", "So.", "Well."]}
    return {**common, "num_correct": 1, "num_incorrect": 3, "total_completions": 4, "subset": subset, **fields}


def styles_row(domain: str = "chat", **fields: Any) -> Row:
    answers = {"chosen": ["Yes.", "Yes, it is.", "**Yes**, it is."], "rejected": ["No.", "No, it is not.", "**No**."]}
    return {"id": 1, "prompt": "Is it?", **answers, "domain": domain, **fields}


def labelled_row(source: str = "mmlu-pro-law", label: str = "B>A", **fields: Any) -> Row:
    answers = {"response_A": "Perhaps.", "response_B": "Yes."}
    return {"pair_id": "1", "source": source, "question": "Is it?", **answers, "label": label, **fields}


def judged(group: str, good: Sequence[float], bad: Sequence[float], *, name: str = "1") -> JudgedCase:
    answers = tuple("a" for _ in good), tuple("b" for _ in bad)
    case = Case(name, group, (Turn("user", name),), *answers)
    return JudgedCase(case, np.array(good, dtype=float), np.array(bad, dtype=float))
