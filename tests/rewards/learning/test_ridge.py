from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge as Oracle

from rewards.learning import ridge as ridge_module
from rewards.learning.config import RIDGE_ALPHAS
from rewards.learning.data import Floats
from rewards.learning.ridge import constant_direction, decomposed, fit_ridge, most_cautious, scaling_of

PROMPTS = [str(i // 2) for i in range(40)]


def make_features(seed: int = 0) -> Floats:
    return np.random.default_rng(seed).normal(size=(40, 5))


def test_it_equals_scikit_learn() -> None:
    x, y = make_features(), make_features(1)[:, :2]
    ridge = fit_ridge(x, y, PROMPTS, alphas=[3.0], blocks=[5])
    scaled = scaling_of(x, [5]).apply(x)
    oracle = Oracle(alpha=3.0).fit(scaled, y)
    np.testing.assert_allclose(x @ ridge.weight.T + ridge.bias, oracle.predict(scaled), atol=1e-10)


def test_its_held_out_error_is_that_of_refitting_without_each_prompt() -> None:
    x, y = make_features(), make_features(1)[:, 0]
    scaled = scaling_of(x, [5]).apply(x)
    left_out = np.empty(len(y))
    for prompt in set(PROMPTS):
        out = np.array([p == prompt for p in PROMPTS])
        left_out[out] = Oracle(alpha=3.0).fit(scaled[~out], y[~out]).predict(scaled[out])
    ridge = fit_ridge(x, y[:, None], PROMPTS, alphas=[3.0], blocks=[5])
    np.testing.assert_allclose(ridge.left_out[:, 0], left_out)
    assert ridge.held_out_rmse[0] == pytest.approx(np.sqrt(np.mean((left_out - y) ** 2)))


def test_features_in_float32_and_in_small_blocks_are_computed_with_in_float64(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = (make_features() + 1_000).astype(np.float32), make_features(1)[:, :2]
    y[::3, 0] = np.nan
    alphas, whole = (0.1, 3.0), x.astype(np.float64)
    expected = fit_ridge(whole, y, PROMPTS, alphas=alphas, blocks=[3, 2])
    monkeypatch.setattr(ridge_module, "BLOCK", 12)
    ridge = fit_ridge(x, y, PROMPTS, alphas=alphas, blocks=[3, 2])
    assert ridge.alphas == expected.alphas
    for name in ("weight", "bias", "held_out_rmse", "left_out"):
        np.testing.assert_allclose(getattr(ridge, name), getattr(expected, name), rtol=1e-9)
    np.testing.assert_array_equal(constant_direction(x), constant_direction(whole))


def test_pure_noise_shrinks_to_the_mean() -> None:
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(400, 30)), rng.normal(size=(400, 4))
    ridge = fit_ridge(x, y, [str(i // 2) for i in range(400)], alphas=RIDGE_ALPHAS, blocks=[30])
    predicted = x @ ridge.weight.T + ridge.bias
    assert np.median(predicted.std(axis=0)) < 0.02


def test_of_penalties_that_predict_as_well_the_largest_is_chosen() -> None:
    errors = np.array([[9.0, 9.0, 9.0], [1.1, 0.9, 1.03], [1.0, 1.0, 1.0]])
    assert most_cautious(errors) == 1


def test_a_real_signal_is_found() -> None:
    x = make_features()
    ridge = fit_ridge(x, x[:, :1] * 2 + 1, PROMPTS, alphas=RIDGE_ALPHAS, blocks=[5])
    assert ridge.held_out_rmse[0] < 0.05


def test_a_missing_label_is_left_out() -> None:
    x, y = make_features(), make_features(1)[:, :1]
    y[30:] = np.nan
    masked = fit_ridge(x, y, PROMPTS, alphas=[1.0], blocks=[5])
    complete = fit_ridge(x, np.nan_to_num(y, nan=99.0), PROMPTS, alphas=[1.0], blocks=[5])
    assert np.isfinite(masked.bias).all()
    assert abs(masked.bias - complete.bias) > 1


def test_one_class_gives_that_class() -> None:
    x = make_features()
    ridge = fit_ridge(x, np.full((40, 1), 3.0), PROMPTS, alphas=RIDGE_ALPHAS, blocks=[5])
    np.testing.assert_allclose(x @ ridge.weight.T + ridge.bias, 3.0)


def test_a_single_prompt_gives_the_mean() -> None:
    ridge = fit_ridge(make_features()[:2], np.array([[1.0], [3.0]]), ["p", "p"], alphas=[1.0], blocks=[5])
    assert ridge.bias.tolist() == [2.0]


def test_a_column_that_never_varies_has_no_huge_weight() -> None:
    x = np.hstack([make_features(), 7 + 1e-7 * make_features(3)[:, :1]])
    ridge = fit_ridge(x, x[:, :1], PROMPTS, alphas=[1.0], blocks=[6])
    assert np.abs(ridge.weight).max() < 2


def test_a_single_column_is_heard_beside_a_wide_block() -> None:
    rng = np.random.default_rng(4)
    x = np.hstack([rng.normal(size=(40, 200)), rng.normal(size=(40, 1))])
    ridge = fit_ridge(x, x[:, 200:], PROMPTS, alphas=RIDGE_ALPHAS, blocks=[200, 1])
    assert ridge.held_out_rmse[0] < 0.2


def test_the_constant_direction_stands_for_a_bias() -> None:
    x = np.random.default_rng(5).normal(size=(20, 30)) + 2
    np.testing.assert_allclose(x @ constant_direction(x), 1.0, atol=1e-3)


@pytest.mark.parametrize("shape", [(12, 40), (40, 12), (1, 5)])
def test_rows_of_low_rank_are_decomposed_into_what_they_are(shape: tuple[int, int]) -> None:
    """LAPACK's SVD does not converge on some of the rows of pairs: every difference stands there with its negative."""
    differences = np.random.default_rng(3).normal(size=shape)
    rows = np.concatenate([differences, -differences])
    left, singular, right = decomposed(rows)
    assert len(singular) == min(shape)
    np.testing.assert_allclose((left * singular) @ right, rows, atol=1e-9)
    np.testing.assert_allclose(left.T @ left, np.eye(len(singular)), atol=1e-9)
    np.testing.assert_allclose(right @ right.T, np.eye(len(singular)), atol=1e-9)


def test_rows_that_are_all_zero_have_no_direction() -> None:
    assert decomposed(np.zeros((4, 3)))[1].size == 0
