"""What the ridge is fitted on: labels, or comparisons where nothing is rated."""

from __future__ import annotations

import numpy as np
import pytest

from rewards.learning.answers import Answers, TuningRows, as_pairs
from rewards.learning.baseline import Baseline, cross_fitted_scores, examples
from rewards.learning.data import Floats, Response, Task
from rewards.learning.encoding import Encoded
from rewards.learning.ridge import fit_ridge
from rewards.learning.splits import Part

PAIRS = 80
ALPHAS = [0.1, 1.0, 10.0, 1e6]


def test_labels_are_fitted_as_they_are() -> None:
    features, labels = np.arange(8.0).reshape(4, 2), np.array([[0.0], [1.0], [np.nan], [3.0]])

    given = examples(features, [part([[0, 1]], labels[:2]), part([[1, 0]], labels[2:])], (1.0,))

    np.testing.assert_array_equal(given.features, features)
    np.testing.assert_array_equal(given.targets, labels)
    np.testing.assert_array_equal(given.bias(np.ones((1, 2)), np.array([5.0])), [5.0])


@pytest.mark.parametrize("weight", [1.0, -2.0])
def test_without_ratings_a_pair_is_its_difference_either_way_round(weight: float) -> None:
    features = np.array([[1.0, 0.0], [3.0, 5.0], [2.0, 2.0], [2.0, 9.0]])

    given = examples(features, [part([[1, 0]]), part([[0, 1]])], (weight,))

    np.testing.assert_array_equal(given.features, [[2, 5], [0, -7], [-2, -5], [0, 7]])
    np.testing.assert_array_equal(given.targets[:, 0] * np.sign(weight), [1, 1, -1, -1])
    assert given.prompts == ["p0", "p0", "p0", "p0"]


def test_rows_that_are_not_read_take_their_pairs_with_them() -> None:
    features = np.array([[1.0, 0.0], [3.0, 5.0], [2.0, 2.0]])

    given = examples(features, [part([[1, 0]]), part([[0, 1]])], (1.0,))

    np.testing.assert_array_equal(given.features, [[2, 5], [-2, -5]])


def test_what_the_responses_share_does_not_drown_what_sets_them_apart() -> None:
    """The prompt makes most of the features here, and people prefer the response with more of the last one."""
    rng = np.random.default_rng(0)
    shared = rng.normal(size=(PAIRS, 1, 30)) * 3
    features = np.repeat(shared, 2, axis=1) + rng.normal(size=(PAIRS, 2, 30)) * 0.2
    better = features[:, 0, -1] < features[:, 1, -1]
    parts = [part([[2 * n + int(b), 2 * n + 1 - int(b)] for n, b in enumerate(better)], tasks=PAIRS)]

    weight, bias = fitted(features.reshape(-1, 30), parts)

    margins = (features[:, 1] - features[:, 0]) @ weight[0]
    assert np.mean((margins > 0) == better) > 0.9
    assert np.mean(features.reshape(-1, 30) @ weight[0] + bias) == pytest.approx(0, abs=1e-9)


def test_a_left_out_pair_is_its_difference_up_and_down() -> None:
    features = np.random.default_rng(0).normal(size=(8, 3))
    parts = [part([[1, 0], [2, 3], [4, 5], [7, 6]], tasks=4)]
    given = examples(features, parts, (1.0,))
    ridge = fit_ridge(given.features, given.targets, given.prompts, alphas=[1.0], blocks=[3])

    scores = Baseline(features, parts, ridge, [3], (1.0,), 0, 1, [features]).left_out()[:, 0]

    np.testing.assert_allclose(scores[[1, 2, 4, 7]] - scores[[0, 3, 5, 6]], ridge.left_out[:4, 0])


def baseline_of(features: Floats, labels: Floats) -> Baseline:
    parts = [part([], labels, tasks=len(labels) // 2)]
    ridge = fit_ridge(features, labels, parts[0].prompts(), alphas=ALPHAS, blocks=[features.shape[1]])
    return Baseline(features, parts, ridge, [features.shape[1]], (1.0,), 0, 1, [features])


def test_no_label_of_a_prompt_reaches_the_cross_fitted_predictions_for_it() -> None:
    """The penalty is chosen again without it as well: otherwise shuffled labels would seem to be foretold."""
    dice = np.random.default_rng(3)
    features, labels = dice.normal(size=(40, 6)), dice.normal(size=(40, 1))
    before = cross_fitted_scores(baseline_of(features, labels), ALPHAS)
    labels[:2] += 50.0
    after = cross_fitted_scores(baseline_of(features, labels), ALPHAS)
    assert before is not None
    assert after is not None
    np.testing.assert_array_equal(before[0][:2], after[0][:2])
    np.testing.assert_array_equal(before[1][:2], after[1][:2])
    assert not np.allclose(before[0][2:], after[0][2:])


def test_cross_fitted_predictions_find_what_is_there_and_nothing_else() -> None:
    dice = np.random.default_rng(3)
    features = dice.normal(size=(200, 6))
    true, noise = features[:, :1] + dice.normal(0, 0.3, (200, 1)), dice.normal(size=(200, 1))
    gains = []
    for labels in (true, noise):
        crossed = cross_fitted_scores(baseline_of(features, labels), ALPHAS)
        assert crossed is not None
        scores, means = crossed
        gains.append(np.mean((means - labels) ** 2 - (scores - labels) ** 2))
    assert gains[0] > 0.5
    assert gains[1] < 0.02


def test_of_pairs_alone_the_left_out_ones_are_put_in_order() -> None:
    dice = np.random.default_rng(3)
    features = dice.normal(size=(60, 4))
    pairs = [[n, n + 1] if features[n, 0] > features[n + 1, 0] else [n + 1, n] for n in range(0, 60, 2)]
    parts = [part(pairs, tasks=30)]
    given = examples(features, parts, (1.0,))
    ridge = fit_ridge(given.features, given.targets, given.prompts, alphas=ALPHAS, blocks=[4])
    crossed = cross_fitted_scores(Baseline(features, parts, ridge, [4], (1.0,), 0, 1, [features]), ALPHAS)
    assert crossed is not None
    scores, means = crossed
    assert np.mean([scores[better, 0] > scores[worse, 0] for better, worse in pairs]) > 0.8
    assert not means.any()


def test_too_few_prompts_are_not_cross_fitted() -> None:
    features = np.arange(16.0).reshape(8, 2)
    assert cross_fitted_scores(baseline_of(features, np.arange(8.0)[:, None]), ALPHAS) is None


def fitted(features: Floats, parts: list[Part]) -> tuple[Floats, Floats]:
    given = examples(features, parts, (1.0,))
    ridge = fit_ridge(given.features, given.targets, given.prompts, alphas=[0.1, 1.0, 10.0], blocks=(30,))
    return ridge.weight, given.bias(ridge.weight, ridge.bias)


def part(pairs: list[list[int]], labels: Floats | None = None, *, tasks: int = 1) -> Part:
    """Tasks of two responses each; the pairs name the better row first."""
    response = Response("r", "text", {}, {}, [])
    made = [Task(str(n), f"p{n}", (), (response, response), None) for n in range(tasks)]
    unknown = np.full((2 * tasks, 1), np.nan)
    answers = Answers(unknown if labels is None else labels, unknown, as_pairs(pairs), np.ones(len(pairs)))
    return Part(made, TuningRows([Encoded((1,), 0, 1, 0, 0)] * (2 * tasks), answers, []))
