"""Ranks the models whose responses were rated: means, win rates and strengths, with intervals over prompts.

Pure statistics of arrays. The responses of one prompt are alike, so all intervals are cluster-robust: what counts as
one observation is a prompt, not a rating (Liang and Zeger 1986; the sandwich estimator with G / (G - 1)).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rewards.learning.paired_gain import t_quantile

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
LEVEL = 0.95
PRIOR = 25.0
"""The variance of the normal prior on each strength, in logits: so wide that it only matters where a model always wins.

Without it such a model would be infinitely strong. Scikit-learn calls the same number C.
"""
STEPS, CLOSE = 100, 1e-10
FEWEST_PROMPTS = 2
"""Prompts below which nothing can be said about chance."""


@dataclass(frozen=True)
class Estimate:
    """A number with the ends of its 95 % interval; `n` values of `prompts` prompts are behind it.

    The ends are None where there are too few prompts.
    """

    value: float
    low: float | None
    high: float | None
    n: int
    prompts: int


@dataclass(frozen=True)
class Sums:
    """The sums by prompt that a mean and its interval need: of n, of the values' sums s, of s², s·n and n²."""

    prompts: int
    n: float
    s: float
    s_squared: float
    s_times_n: float
    n_squared: float


def mean_of(sums: Sums) -> Estimate:
    """Returns the mean over all values, with an interval over prompts: a ratio estimator (Cochran 1977, 6.3)."""
    mean = sums.s / sums.n
    residual = max(sums.s_squared - 2 * mean * sums.s_times_n + mean**2 * sums.n_squared, 0.0)
    return _estimate(mean, residual / sums.n**2, n=int(sums.n), prompts=sums.prompts)


def sums_of(values: Floats, prompts: Whole) -> Sums:
    """Returns the sums by prompt of values [n] with their prompts [n], which are numbered from 0."""
    s, n = np.bincount(prompts, values), np.bincount(prompts).astype(np.float64)
    s, n = s[n > 0], n[n > 0]
    return Sums(len(n), n.sum(), s.sum(), (s**2).sum(), (s * n).sum(), (n**2).sum())


def _estimate(value: float, variance: float, *, n: int, prompts: int) -> Estimate:
    if prompts < FEWEST_PROMPTS:
        return Estimate(value, None, None, n, prompts)
    margin = t_quantile((1 + LEVEL) / 2, prompts - 1) * math.sqrt(variance * prompts / (prompts - 1))
    return Estimate(value, value - margin, value + margin, n, prompts)


# Pairs -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pairs:
    """Comparisons of responses of two different models to the same prompt.

    first, second [pairs]: the models, numbered from 0. outcome [pairs]: 1 if the first is better, 0 if the second is,
    0.5 for a tie. longer [pairs]: by how many characters the first response is longer. prompts [pairs]: their prompts,
    numbered from 0.
    """

    first: Whole
    second: Whole
    outcome: Floats
    longer: Floats
    prompts: Whole

    def __len__(self) -> int:
        return len(self.outcome)

    def only(self, kept: Any) -> "Pairs":
        """Returns the comparisons at the places that are kept [pairs]."""
        return Pairs(
            self.first[kept], self.second[kept], self.outcome[kept], self.longer[kept], _numbered(self.prompts[kept])
        )


def _numbered(values: Whole) -> Whole:
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


@dataclass(frozen=True)
class RankedModel:
    """One model in the comparisons. All win rates are shares of 1.

    `wins` is the share that it has won, ties as halves. `fair` is the same as it would be at equal lengths; `strength`
    is its Bradley-Terry strength in logits, where the average model has 0. `group` numbers the sets of models that no
    comparison connects.
    """

    model: int
    wins: Estimate
    fair: Estimate
    strength: Estimate
    group: int


@dataclass(frozen=True)
class Ranking:
    """The models that were compared, the best first. `length` is how far a longer response is favoured.

    That is the coefficient of the length term: how many logits a response gains that is longer by one standard
    deviation, about.
    """

    standings: Sequence[RankedModel]
    length: Estimate | None
    pairs: int
    ties: int


def ranking(pairs: Pairs, *, models: int) -> Ranking:
    """Ranks the models by their length-controlled win rates."""
    present = np.unique(np.concatenate([pairs.first, pairs.second]))
    if not len(pairs):
        return Ranking([], None, 0, 0)
    plain, controlled = fit(pairs, models=models), fit(pairs, models=models, by_length=True)
    groups = connected(pairs, models=models)
    standings = [
        RankedModel(
            int(model),
            _wins(pairs, int(model)),
            _fair(pairs, controlled, int(model)),
            plain.strength(int(model)),
            groups[int(model)],
        )
        for model in present
    ]
    best_first = sorted(standings, key=lambda one: (-one.fair.value, one.model))
    return Ranking(best_first, controlled.length(), len(pairs), int((pairs.outcome == 0.5).sum()))


def _wins(pairs: Pairs, model: int) -> Estimate:
    is_first, is_second = pairs.first == model, pairs.second == model
    mine = is_first | is_second
    won = np.where(is_first, pairs.outcome, 1 - pairs.outcome)[mine]
    return _within(mean_of(sums_of(won, _numbered(pairs.prompts[mine]))), 0.0, 1.0)


def _within(estimate: Estimate, least: float, most: float) -> Estimate:
    """Returns the estimate with an interval that does not leave what is possible."""
    if estimate.low is None or estimate.high is None:
        return estimate
    low, high = max(estimate.low, least), min(estimate.high, most)
    return Estimate(estimate.value, low, high, estimate.n, estimate.prompts)


def connected(pairs: Pairs, *, models: int) -> list[int]:
    """Returns the number of each model's group: models of different groups were never compared, not even indirectly."""
    group = list(range(models))
    for one, other in set(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True)):
        if group[one] != group[other]:
            joined, gone = sorted((group[one], group[other]))
            group = [joined if number == gone else number for number in group]
    return group


# Bradley-Terry, with and without a length term -------------------------------------------------------------


@dataclass(frozen=True)
class Fit:
    """A fitted logistic regression: weights [models, or models + 1] and their cluster-robust covariance.

    The last weight is that of the length term where there is one.
    """

    weights: Floats
    covariance: Floats
    models: int
    pairs: int
    prompts: int

    def strength(self, model: int) -> Estimate:
        return self._linear(self.weights[model], np.eye(len(self.weights))[model])

    def length(self) -> Estimate | None:
        if len(self.weights) == self.models:
            return None
        return self._linear(self.weights[-1], np.eye(len(self.weights))[-1])

    def _linear(self, value: float, gradient: Floats) -> Estimate:
        variance = float(gradient @ self.covariance @ gradient)
        return _estimate(float(value), variance, n=self.pairs, prompts=self.prompts)


def fit(pairs: Pairs, *, models: int, by_length: bool = False) -> Fit:
    """Fits P(first is better) = sigmoid(strength of the first - strength of the second + length term).

    Bradley and Terry 1952; a tie is half a win for both. The length term is that of AlpacaEval's length-controlled win
    rate (Dubois et al. 2024, arXiv 2404.04475, section 3): tanh of the difference of the lengths over its standard
    deviation. Their term for how hard a prompt is needs one fixed rival, so it is left out.
    """
    rows = np.arange(len(pairs))
    design = np.zeros((len(pairs), models + by_length))  # [pairs, weights]
    design[rows, pairs.first] = 1.0
    design[rows, pairs.second] = -1.0
    if by_length:
        design[:, -1] = length_term(pairs.longer)
    precision = np.eye(design.shape[1]) / PRIOR
    weights = np.zeros(design.shape[1])
    for _step in range(STEPS):
        expected = _sigmoid(design @ weights)
        gradient = design.T @ (pairs.outcome - expected) - precision @ weights
        curvature = (design * (expected * (1 - expected))[:, None]).T @ design + precision
        move = np.linalg.solve(curvature, gradient)
        # A step of many logits overshoots where one model nearly always wins.
        move *= min(1.0, 5.0 / max(np.abs(move).max(), 1e-300))
        weights = weights + move
        if np.abs(move).max() < CLOSE:
            break
    expected = _sigmoid(design @ weights)
    curvature = (design * (expected * (1 - expected))[:, None]).T @ design + precision
    prompts = int(pairs.prompts.max()) + 1 if len(pairs) else 0
    by_prompt = np.zeros((prompts, design.shape[1]))
    np.add.at(by_prompt, pairs.prompts, design * (pairs.outcome - expected)[:, None])
    inverse = np.linalg.inv(curvature)
    return Fit(weights, inverse @ (by_prompt.T @ by_prompt) @ inverse, models, len(pairs), prompts)


def length_term(longer: Floats) -> Floats:
    """[pairs]: tanh of the differences in length over their standard deviation; 0 where all lengths are the same."""
    # Around 0, not around the mean: which response stands first says nothing.
    deviation = math.sqrt(float((longer**2).mean())) if len(longer) else 0.0
    return np.tanh(longer / deviation) if deviation else np.zeros_like(longer)


def _sigmoid(values: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-np.clip(values, -500, 500))), dtype=np.float64)


def _fair(pairs: Pairs, fitted: Fit, model: int) -> Estimate:
    """Returns the win rate at equal lengths: the mean over the model's comparisons of what the strengths expect.

    Its interval is that of the strengths, by the delta method.
    """
    rivals = np.concatenate([pairs.second[pairs.first == model], pairs.first[pairs.second == model]])
    counts = np.bincount(rivals, minlength=fitted.models).astype(np.float64)
    shares = counts / counts.sum()
    expected = _sigmoid(fitted.weights[model] - fitted.weights[: fitted.models])
    slope = shares * expected * (1 - expected)
    gradient = np.zeros(len(fitted.weights))
    gradient[: fitted.models] = -slope
    gradient[model] += slope.sum()
    mine = (pairs.first == model) | (pairs.second == model)
    variance = float(gradient @ fitted.covariance @ gradient)
    prompts = len(np.unique(pairs.prompts[mine]))
    return _within(_estimate(float(shares @ expected), variance, n=int(mine.sum()), prompts=prompts), 0.0, 1.0)
