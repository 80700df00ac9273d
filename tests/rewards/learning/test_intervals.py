from __future__ import annotations

import numpy as np
import pytest

from rewards.learning.data import Floats
from rewards.learning.intervals import bounds, by_prompt, drawn_means, of_share

VALUES = np.random.default_rng(1).normal(size=400)


def mean(weights: Floats) -> dict[str, float | None]:
    return {"mean": float(VALUES @ weights / weights.sum())}


def test_the_interval_of_a_mean_is_two_standard_errors_wide() -> None:
    interval = by_prompt([str(number) for number in range(400)], mean)["mean"]
    assert interval is not None
    error = VALUES.std() / np.sqrt(400)
    assert interval == pytest.approx([VALUES.mean() - 1.96 * error, VALUES.mean() + 1.96 * error], abs=0.25 * error)


def test_rows_of_one_prompt_come_and_go_together() -> None:
    def rows_drawn(weights: Floats) -> dict[str, float | None]:
        assert set(weights[:200]) == {weights[0]}
        return {"drawn": float(weights[0])}

    assert by_prompt(["a"] * 200 + [f"b{number}" for number in range(200)], rows_drawn)


def test_the_same_seed_gives_the_same_interval() -> None:
    prompts = [str(number % 50) for number in range(400)]
    assert by_prompt(prompts, mean) == by_prompt(prompts, mean)
    assert by_prompt(prompts, mean) != by_prompt(prompts, mean, seed=1)


def test_one_prompt_says_nothing() -> None:
    assert by_prompt(["a"] * 400, mean) == {}
    assert bounds(drawn_means(np.ones(1))) is None


def test_what_is_mostly_undefined_has_no_interval() -> None:
    assert by_prompt([str(n) for n in range(400)], lambda w: {"x": None if w[0] else 1.0})["x"] is None


@pytest.mark.parametrize(("value", "interval"), [(1.0, [0.398, 1.0]), (0.0, [0.0, 0.602])])
def test_four_out_of_four_are_no_certainty(value: float, interval: list[float]) -> None:
    # The bounds of Clopper and Pearson for 4 of 4 and for 0 of 4.
    found = of_share(np.full(8, value), [str(number // 2) for number in range(8)])["accuracy"]
    assert found == pytest.approx(interval, abs=0.001)
    assert of_share(np.full(3, value), ["a"] * 3) == {}
