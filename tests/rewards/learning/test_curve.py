"""The learning curve against data whose law is known."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rewards.learning.config import RIDGE_ALPHAS
from rewards.learning.curve import CurveRows, PowerLaw, fit_power_law, learning_curve


def make_rows(prompts: int, *, features: int = 20, noise: float = 1.0, signal: float = 1.0, seed: int = 0) -> CurveRows:
    """Two responses a prompt; both attributes follow one direction of the features, plus noise."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(2 * prompts, features))
    truth = signal * (x @ random.normal(size=features)) / np.sqrt(features)
    targets = 2 + truth[:, None] + noise * random.normal(size=(2 * prompts, 2))
    names = [f"p{number // 2}" for number in range(2 * prompts)]
    pairs = [(i, i + 1) if truth[i] > truth[i + 1] else (i + 1, i) for i in range(0, 2 * prompts, 2)]
    return CurveRows([x], targets, names, [1.0, 0.5], pairs)


def compared(rows: CurveRows) -> CurveRows:
    """The same prompts where people only said which response is better."""
    return replace(rows, targets=np.full(rows.targets.shape, np.nan))


def curve(rows: CurveRows, *, alphas: Sequence[float] = RIDGE_ALPHAS[::8], seed: int = 0, more: int = 1000) -> Any:
    outcome = learning_curve(rows, alphas=alphas, blocks=[rows.features[0].shape[1]], seed=seed, more=more)
    assert outcome is not None
    return outcome


def test_more_labels_lower_the_error_and_order_more_pairs() -> None:
    points = curve(make_rows(200))["points"]
    errors, accuracies = ([point[name] for point in points] for name in ("error", "accuracy"))
    assert errors[0] > 1.15 * errors[-1]
    assert accuracies[-1] > accuracies[0] + 0.1
    assert errors[-1] == pytest.approx(1.0, abs=0.1)  # the noise


def test_the_outlook_holds_against_data_that_came_later() -> None:
    noise = 1.0
    outlook, later = (curve(make_rows(prompts, features=60, noise=noise))["outlook"] for prompts in (150, 650))
    assert (outlook["labels"], outlook["evidence"]) == (300, True)
    assert outlook["probability"] > 0.95
    assert outlook["low"] < outlook["now"] - later["now"] < outlook["high"]
    # The law is cautious: what later data bring is nearer to the upper end of the interval than to its middle.
    assert later["now"] - 0.06 < outlook["then"] < later["now"] + 0.12
    assert outlook["then"] > noise - 0.1


def test_pure_noise_gives_no_evidence() -> None:
    flat = [curve(make_rows(100, signal=0.0, seed=seed))["outlook"]["evidence"] for seed in range(10)]
    assert sum(flat) <= 1


def test_the_penalty_is_chosen_anew_at_each_size() -> None:
    """One that suits many labels lets a few of them fit noise: the curve would begin too high and fall too far."""
    rows = make_rows(200, features=100, noise=2.0)
    anew, fixed = curve(rows), curve(rows, alphas=[1e-2])
    assert anew["points"][0]["error"] < fixed["points"][0]["error"]


def test_the_depth_is_chosen_anew_at_each_size() -> None:
    rows = make_rows(60)
    nothing = np.random.default_rng(9).normal(size=rows.features[0].shape)
    both, alone = curve(replace(rows, features=[nothing, rows.features[0]])), curve(rows)
    assert both["points"][-1]["error"] == pytest.approx(alone["points"][-1]["error"], abs=0.01)


def test_preferences_alone_have_a_curve_of_wrong_pairs() -> None:
    outcome = curve(compared(make_rows(200)))
    first, last = outcome["points"][0], outcome["points"][-1]
    assert (outcome["measure"], outcome["outlook"]["labels"], last["labels"]) == ("wrong", 200, 180)
    assert first["error"] > last["error"] + 0.1
    assert last["accuracy"] == pytest.approx(1 - last["error"])


def test_no_accuracy_is_above_1_and_no_error_below_0() -> None:
    rows = make_rows(100, features=4, noise=0.01)
    for outcome in (curve(rows), curve(compared(rows))):
        bounds = [(point["low"], point["accuracy_high"]) for point in outcome["points"]]
        assert all(low >= 0 and high <= 1 for low, high in bounds)
        assert outcome["outlook"]["then"] >= 0


def test_the_same_seed_draws_the_same_curve() -> None:
    rows = make_rows(60)
    assert curve(rows, seed=3) == curve(rows, seed=3)
    assert curve(rows, seed=3) != curve(rows, seed=4)


def test_a_few_prompts_draw_no_curve() -> None:
    assert learning_curve(make_rows(29), alphas=[1.0], blocks=[20], seed=0) is None


def test_missing_labels_do_not_count() -> None:
    rows = make_rows(60)
    rows.targets[::2] = np.nan
    outcome = curve(rows)
    assert outcome["outlook"]["labels"] == 60
    assert np.isfinite([point["error"] for point in outcome["points"]]).all()


def test_a_power_law_is_found_again() -> None:
    labels = np.geomspace(20, 2000, 7)
    law = fit_power_law(labels, 0.8 + 3.0 * labels**-0.5, 0.5)
    assert (law.floor, law.slope, law.exponent) == pytest.approx((0.8, 3.0, 0.5), abs=1e-6)
    assert law.at(10_000) == pytest.approx(0.83)


def test_a_flat_curve_promises_nothing() -> None:
    assert fit_power_law(np.geomspace(20, 2000, 7), np.full(7, 0.9), 0.2).at(1e6) == pytest.approx(0.9)
    assert PowerLaw(0.9, 0.0, 1.0).at(10) == 0.9


def test_many_features_are_turned_to_fewer_and_it_stays_quick() -> None:
    rows = make_rows(500, features=1500)
    started = time.process_time()
    outcome = curve(rows)
    assert time.process_time() - started < 20
    assert json.loads(json.dumps(outcome)) == outcome
