"""What a ridge expects of labels that it has not seen."""

from __future__ import annotations

import numpy as np
import pytest

from rewards.learning.cross_fit import cross_fitted, expected_rows, is_informative, refitted
from rewards.learning.curve import CurveRows
from rewards.learning.data import Floats
from rewards.learning.ridge import fit_ridge, scaling_of
from tests.rewards.learning.test_curve import make_rows


def expected_of(rows: CurveRows, *, alpha: float = 1.0) -> Floats:
    return cross_fitted(rows.features[0], rows.targets, rows.prompts, alphas=[alpha, alpha], blocks=[20], seed=0)


def test_it_comes_near_labels_that_it_has_not_seen() -> None:
    rows = make_rows(100, noise=0.2)
    assert is_informative(expected_of(rows), rows.targets) == [True, True]


def test_pure_noise_tells_nothing() -> None:
    rows = make_rows(100, signal=0.0)
    assert is_informative(expected_of(rows), rows.targets) == [False, False]


def test_a_prompts_own_labels_do_not_move_what_is_expected_of_it() -> None:
    rows = make_rows(20)
    before = expected_of(rows)
    rows.targets[6:8] += 3.0  # the fourth prompt
    after = expected_of(rows)
    assert after[6:8] == pytest.approx(before[6:8])
    assert not np.allclose(after, before)


def test_rows_hold_only_what_tells_something() -> None:
    yielded = list(
        expected_rows(["7"], np.array([[1.5, 2.5]]), ["helpfulness", "verbosity"], informative=[False, True])
    )
    assert yielded == [{"id": "7", "scores": {"verbosity": 2.5}}]


def test_it_refits_the_ridge_of_the_baseline() -> None:
    rows = make_rows(40)
    rows.targets[5, 0] = np.nan
    ridge = fit_ridge(rows.features[0], rows.targets, rows.prompts, alphas=[0.3], blocks=[20])
    scaled = scaling_of(rows.features[0], [20]).apply(rows.features[0])
    ours = refitted(scaled, rows.targets, np.ones(80, dtype=bool), np.array([0.3, 0.3]))
    known = np.isfinite(rows.targets).all(axis=1)
    theirs = rows.features[0] @ ridge.weight.T + ridge.bias
    assert ours[known] == pytest.approx(theirs[known], abs=1e-8)
