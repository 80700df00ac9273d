from __future__ import annotations

import pytest

from rewards.learning.benchmarks import rewardbench1
from rewards.learning.benchmarks.cases import JudgedCase
from rewards.learning.benchmarks.rewardbench1 import SECTIONS, WEIGHTS, measure, section_score
from tests.rewards.learning.benchmarks.builders import judged

# The published subset scores of beaver-7b-v1.0-cost.
PUBLISHED = {
    "alpacaeval-easy": 0.5,
    "alpacaeval-hard": 0.7052631578947368,
    "alpacaeval-length": 0.5894736842105263,
    "donotanswer": 0.8235294117647058,
    "hep-cpp": 0.6280487804878049,
    "hep-go": 0.6341463414634146,
    "hep-java": 0.7073170731707317,
    "hep-js": 0.6646341463414634,
    "hep-python": 0.5487804878048781,
    "hep-rust": 0.6463414634146342,
    "llmbar-adver-GPTInst": 0.391304347826087,
    "llmbar-adver-GPTOut": 0.46808510638297873,
    "llmbar-adver-manual": 0.3695652173913043,
    "llmbar-adver-neighbor": 0.43283582089552236,
    "llmbar-natural": 0.52,
    "math-prm": 0.2953020134228188,
    "mt-bench-easy": 0.5714285714285714,
    "mt-bench-hard": 0.5405405405405406,
    "mt-bench-med": 0.725,
    "refusals-dangerous": 0.97,
    "refusals-offensive": 1.0,
    "xstest-should-refuse": 1.0,
    "xstest-should-respond": 0.284,
}
SCORES = {"Chat": 0.608939, "Chat Hard": 0.449561, "Safety": 0.721622, "Reasoning": 0.466757}


def test_it_gives_the_published_section_scores() -> None:
    assert {name: section_score(name, PUBLISHED) for name in SECTIONS} == pytest.approx(SCORES, abs=1e-6)


def test_whole_rows_give_the_published_scores_too() -> None:
    measures = measure(rows_with(PUBLISHED))
    accuracies = {name: section["accuracy"] for name, section in measures["sections"].items()}
    assert accuracies == pytest.approx(SCORES, abs=1e-6)
    assert measures["overall"]["accuracy"] == pytest.approx(sum(SCORES.values()) / 4, abs=1e-6)
    low, high = measures["overall"]["intervals"]["accuracy"]
    assert low < measures["overall"]["accuracy"] < high


def test_the_benchmark_has_its_published_size() -> None:
    assert sum(rows for subsets in SECTIONS.values() for rows in subsets.values()) == 2985
    assert WEIGHTS["math-prm"] == sum(WEIGHTS[name] for name in WEIGHTS if name.startswith("hep-"))


def test_a_tie_is_wrong_and_counted() -> None:
    measured = measure([judged("llmbar-natural", [1], [1])])["subsets"]["llmbar-natural"]
    assert (measured["accuracy"], measured["ties"]) == (0, 1)


def test_a_reward_that_is_no_number_is_wrong_and_counted() -> None:
    measured = measure([judged("llmbar-natural", [float("nan")], [1])])["all"]
    assert (measured["accuracy"], measured["not_finite"]) == (0, 1)


def test_a_section_that_is_not_whole_has_a_reason_instead_of_a_score() -> None:
    measures = measure([judged("llmbar-natural", [1], [0])])
    section = measures["sections"]["Chat Hard"]
    assert section["accuracy"] is None
    assert "mt-bench-hard is not there; llmbar-natural has 1 of 100 rows" in section["reason"]
    assert measures["overall"] == {
        "accuracy": None,
        "reason": "not all sections are complete: Chat, Chat Hard, Safety, Reasoning",
    }
    assert measures["sections"]["Chat"]["reason"] == "none of its subsets is there"


def test_copies_that_swap_the_two_halves_of_xstest_are_noticed() -> None:
    rows = {"xstest-should-refuse": 250, "xstest-should-respond": 154}
    assert "xstest-should-refuse has 250 of 154 rows" in rewardbench1.lacking("Safety", rows)


def test_the_same_rows_give_the_same_intervals() -> None:
    rows = [judged("llmbar-natural", [n % 3], [1], name=str(n)) for n in range(30)]
    assert measure(rows) == measure(rows)


def rows_with(accuracies: dict[str, float]) -> list[JudgedCase]:
    counts = {name: rows for subsets in SECTIONS.values() for name, rows in subsets.items()}
    return [
        judged(name, [n < round(accuracies[name] * count)], [0], name=f"{name}{n}")
        for name, count in counts.items()
        for n in range(count)
    ]
