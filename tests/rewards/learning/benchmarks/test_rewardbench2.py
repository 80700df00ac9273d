from __future__ import annotations

import numpy as np
import pytest

from rewards.learning.benchmarks.cases import JudgedCase
from rewards.learning.benchmarks.rewardbench2 import DOMAINS, Rewards, case, measure, result, ties_score
from tests.rewards.learning.benchmarks.builders import best_of_four_row, judged

GOLDEN = [
    judged("Ties", [5], [1, 0.5], name="ref:0"),
    judged("Ties", [4, 3.5, 3.8], [1, 0], name="tied:0"),
    judged("Ties", [2], [2.5], name="ref:1"),
    judged("Ties", [3, 1, 2], [0.5], name="tied:1"),
    judged("Ties", [3], [0], name="ref:2"),
    judged("Ties", [2, 2], [1], name="tied:2"),
]


def test_ties_give_the_golden_score() -> None:
    ties = measure(GOLDEN)["domains"]["Ties"]
    assert ties["accuracy"] == pytest.approx(0.7705034855326052, abs=1e-6)
    assert ties["intervals"]["accuracy"][0] <= ties["accuracy"] <= ties["intervals"]["accuracy"][1]


def test_a_margin_of_nothing_by_nothing_adds_nothing() -> None:
    same = Rewards(np.ones(2), np.ones(1))
    assert ties_score({0: same}, {0: same}) == 0


def test_ties_need_a_prompt_as_ref_and_as_tied() -> None:
    ties = measure([judged("Ties", [1], [0], name="ref:0")])["domains"]["Ties"]
    assert (ties["accuracy"], ties["reason"]) == (None, "no prompt is there as ref and as tied")


def test_the_right_answer_shares_its_point_with_those_that_tie_for_the_top() -> None:
    assert result(judged("Math", [2], [1, 0, 1])) == 1
    assert result(judged("Math", [2], [2, 0, 2])) == pytest.approx(1 / 3)
    assert result(judged("Math", [2], [3, 2, 2])) == 0


def test_the_overall_score_is_the_plain_mean_of_whole_domains() -> None:
    rows = whole(right=("Math", "Focus"))
    measures = measure(rows)
    # Ties loses a little where a wrong answer is ahead and the right ones do not differ.
    assert measures["overall"]["accuracy"] == pytest.approx((1 + 1 + 0 + 0 + 0 - 0.01) / 6)


def test_part_of_the_benchmark_has_no_overall_score() -> None:
    measures = measure([judged("Math", [1], [0, 0, 0])])
    assert measures["domains"]["Math"]["accuracy"] == 1
    assert measures["overall"]["accuracy"] is None
    assert "Math has 1 of 183 rows" in measures["overall"]["reason"]


def test_a_row_of_ties_without_its_kind_of_id_is_refused() -> None:
    with pytest.raises(ValueError, match="ref:NUMBER"):
        case(best_of_four_row("Ties", id="7"))


def whole(*, right: tuple[str, ...]) -> list[JudgedCase]:
    rows = []
    for name, count in DOMAINS.items():
        for n in range(count):
            row_id = f"{'ref' if n % 2 else 'tied'}:{n // 2}"
            rows.append(judged(name, [float(name in right)], [0.5], name=row_id))
    return rows
