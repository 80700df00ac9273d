from __future__ import annotations

import numpy as np
import pytest

from rewards.learning.data import Floats
from rewards.learning.ensemble import Ensemble, fit_ensemble
from rewards.learning.ridge import fit_ridge

BLOCKS = (6,)
ALPHAS = (1.0, 1.0)


def make_data(rows: int, *, seed: int = 0) -> tuple[Floats, Floats, list[str]]:
    """Two responses a prompt; the first feature decides one attribute, the second the other."""
    random = np.random.default_rng(seed)
    features = random.normal(size=(rows, 6))
    targets = 2 + features[:, :2] + 0.3 * random.normal(size=(rows, 2))
    return features, targets, [f"p{row // 2}" for row in range(rows)]


def fitted(rows: int = 200) -> Ensemble:
    features, targets, prompts = make_data(rows)
    return fit_ensemble(features, targets, prompts, alphas=ALPHAS, blocks=BLOCKS, seed=1)


def test_every_head_is_near_the_ridge_on_all_rows() -> None:
    features, targets, prompts = make_data(400)
    ensemble = fit_ensemble(features, targets, prompts, alphas=ALPHAS, blocks=BLOCKS, seed=1)
    ridge = fit_ridge(features, targets, prompts, alphas=ALPHAS[:1], blocks=BLOCKS)
    assert ensemble.weight.shape == (8, 2, 6)
    np.testing.assert_allclose(ensemble.weight.mean(axis=0), ridge.weight, atol=0.05)
    np.testing.assert_allclose(ensemble.bias.mean(axis=0), ridge.bias, atol=0.05)


def test_a_head_on_rows_that_all_count_once_is_the_ridge() -> None:
    features, targets, _ = make_data(40)
    one = fit_ensemble(features, targets, ["p"] * 40, alphas=ALPHAS, blocks=BLOCKS, seed=1, heads=1)
    ridge = fit_ridge(features, targets, [f"{row}" for row in range(40)], alphas=ALPHAS[:1], blocks=BLOCKS)
    np.testing.assert_allclose(one.weight[0], ridge.weight, atol=1e-10)
    np.testing.assert_allclose(one.bias[0], ridge.bias, atol=1e-10)


def test_with_fewer_rows_than_features_it_is_the_same_solution() -> None:
    features, targets, _ = make_data(4)
    one = fit_ensemble(features, targets, ["p"] * 4, alphas=ALPHAS, blocks=BLOCKS, seed=1, heads=1)
    ridge = fit_ridge(features, targets, list("abcd"), alphas=ALPHAS[:1], blocks=BLOCKS)
    np.testing.assert_allclose(one.weight[0], ridge.weight, atol=1e-10)


def test_the_same_seed_gives_the_same_heads() -> None:
    np.testing.assert_array_equal(fitted().weight, fitted().weight)


def test_it_is_less_certain_far_from_what_it_has_seen() -> None:
    features, _, _ = make_data(50, seed=9)
    near, far = (fitted().deviation(scale * features, (0.5, 0.5)).mean() for scale in (1, 4))
    assert far > 2 * near


def test_more_labels_make_it_more_certain() -> None:
    features, _, _ = make_data(50, seed=9)
    few, many = (fitted(rows).deviation(features, (0.5, 0.5)).mean() for rows in (40, 1000))
    assert many < few / 2


def test_a_missing_label_is_left_out() -> None:
    features, targets, prompts = make_data(400)
    targets[::2, 1] = np.nan
    ensemble = fit_ensemble(features, targets, prompts, alphas=ALPHAS, blocks=BLOCKS, seed=1)
    assert ensemble.weight[:, 1, 1].mean() == pytest.approx(1, abs=0.15)
    assert ensemble.weight[:, 0].std(axis=0).mean() < ensemble.weight[:, 1].std(axis=0).mean()


def test_an_attribute_that_is_never_labelled_is_zero() -> None:
    features, targets, prompts = make_data(100)
    targets[:, 1] = np.nan
    ensemble = fit_ensemble(features, targets, prompts, alphas=ALPHAS, blocks=BLOCKS, seed=1)
    assert not ensemble.weight[:, 1].any()


def test_a_head_that_drew_no_label_gives_the_mean() -> None:
    features, targets, prompts = make_data(100)
    targets[1:, 1] = np.nan
    ensemble = fit_ensemble(features, targets, prompts, alphas=ALPHAS, blocks=BLOCKS, seed=1)
    np.testing.assert_allclose(features @ ensemble.weight[:, 1].T + ensemble.bias[:, 1], targets[0, 1])
