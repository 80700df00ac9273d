"""What the ridge is fitted on: labels, or comparisons where nothing is rated."""

from __future__ import annotations

import numpy as np
import pytest

from rewards.learning.baseline import Baseline, examples
from rewards.learning.data import Floats, Response, Task
from rewards.learning.encoding import Encoded
from rewards.learning.finetune import Rows
from rewards.learning.objectives import Answers, as_pairs
from rewards.learning.ridge import fit_ridge
from rewards.learning.splits import Part

PAIRS = 80


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

    scores = Baseline(features, parts, ridge, [3], (1.0,), 0, 1).left_out()[:, 0]

    np.testing.assert_allclose(scores[[1, 2, 4, 7]] - scores[[0, 3, 5, 6]], ridge.left_out[:4, 0])


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
    return Part(made, Rows([Encoded((1,), 0, 1, 0, 0)] * (2 * tasks), answers, []))
