"""Fits a closed-form ridge per attribute; exact leave-one-prompt-out errors choose its penalty. NumPy only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rewards.learning.data import Features, Floats, Ints

# In standard errors. On real conversations with 200 prompts, half a standard error cost no accuracy and made the worst
# splits better; a whole one cost some accuracy.
CAUTION = 0.5
BLOCK = 1 << 22
"""The most numbers that are turned into float64, or multiplied, at once."""
PRECISION = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Ridge:
    """A linear head, weight [attributes, features] and bias [attributes], and per attribute how it was chosen.

    `left_out` [n, attributes] holds for each row of the fit the prediction of a ridge that was fitted without the row's
    prompt; where a row has no label, the prediction of the ridge itself.
    """

    weight: Floats
    bias: Floats
    alphas: tuple[float, ...]
    held_out_rmse: tuple[float, ...]
    left_out: Floats


@dataclass(frozen=True)
class Scaling:
    """Centres the columns and scales each block to a total variance of 1; mean [d], scale [d].

    So a block of many features does not drown a single feature beside it. Within a block the columns keep their
    proportions: standardising each column would turn a nearly constant one into noise, and give it a weight so large
    that fine-tuning breaks on it.
    """

    mean: Floats
    scale: Floats

    def apply(self, features: Features) -> Floats:
        """[n, d]: the scaled features [n, d], a copy in float64."""
        scaled: Floats = features - self.mean
        scaled /= self.scale
        return scaled


def fit_ridge(
    features: Features, targets: Floats, prompts: Sequence[str], *, alphas: Sequence[float], blocks: Sequence[int]
) -> Ridge:
    """Returns the ridge of all attributes, each with its own penalty out of `alphas`.

    features [n, d], split into `blocks` columns each; targets [n, k] with NaN for a missing label; prompts [n]. The
    intercept bears no penalty, so the largest alphas predict the mean of the labels.
    """
    scaling = scaling_of(features, blocks)
    groups = np.unique(np.asarray(prompts), return_inverse=True)[1]
    known = np.isfinite(targets)
    fits: dict[int, _Fit] = {}
    # One decomposition, by far the longest part, serves all attributes that are labelled in the same rows.
    for columns in labelled_alike(known):
        rows = known[:, columns[0]]
        pieces = _decompose(scaling.apply(features[rows]), groups[rows])
        fits |= {column: _fit(pieces, targets[rows, column], alphas) for column in columns.tolist()}
    in_order = [fits[column] for column in range(targets.shape[1])]
    # In the units of the features as they are: the network's head knows no scaling.
    weight = np.stack([fit.weight for fit in in_order]) / scaling.scale
    bias = np.array([fit.bias for fit in in_order]) - weight @ scaling.mean
    left_out = predictions(features, weight) + bias
    for column, fit in enumerate(in_order):
        left_out[known[:, column], column] = fit.left_out
    return Ridge(
        weight, bias, tuple(fit.alpha for fit in in_order), tuple(fit.held_out_rmse for fit in in_order), left_out
    )


def predictions(features: Features, weight: Floats) -> Floats:
    """[n, k]: features [n, d] times weight [k, d], some rows at a time, as the product turns them into float64."""
    products = np.empty((len(features), len(weight)))
    for part in _parts(*features.shape):
        products[part] = features[part] @ weight.T
    return products


def _parts(rows: int, width: int) -> Iterator[slice]:
    """Yields the rows in parts of at most BLOCK numbers."""
    step = max(1, BLOCK // max(1, width))
    return (slice(start, start + step) for start in range(0, rows, step))


def scaling_of(features: Features, blocks: Sequence[int]) -> Scaling:
    """Returns the scaling of features [n, d], of which each block has so many columns."""
    bounds = np.cumsum(blocks)[:-1]
    mean = features.mean(axis=0, dtype=np.float64)
    squares = sum(((features[part] - mean) ** 2).sum(axis=0) for part in _parts(*features.shape))
    deviations = [float(np.sqrt(part.sum())) for part in np.split(squares / len(features), bounds)]
    # A block that never varies says nothing: its scale of 1 leaves it at zero.
    scales = [deviation if deviation > 1e-6 else 1.0 for deviation in deviations]
    return Scaling(mean, np.repeat(scales, blocks))


def decomposed(rows: Floats) -> tuple[Floats, Floats, Floats]:
    """Returns left [n, rank], singular values [rank] and right [rank, d], whose product is rows [n, d].

    By the eigenvectors of the smaller Gram matrix: LAPACK's divide and conquer SVD does not converge on some rows of
    low rank, such as differences and their negatives. Directions below the square root of the machine's precision are
    lost; a penalty leaves nothing of them anyway.
    """
    is_wide = rows.shape[0] < rows.shape[1]
    squares, vectors = np.linalg.eigh(rows @ rows.T if is_wide else rows.T @ rows)
    kept = squares > max(squares[-1], 0.0) * PRECISION * len(squares)
    singular, vectors = np.sqrt(squares[kept]), vectors[:, kept]
    others = (rows.T if is_wide else rows) @ vectors / singular
    return (vectors, singular, others.T) if is_wide else (others, singular, vectors.T)


def constant_direction(features: Features, *, penalty: float = 1e-6) -> Floats:
    """[d]: the smallest v with features @ v as near to 1 as possible, which stands for a bias in a head without one."""
    features = np.asarray(features, dtype=np.float64)
    # The penalty, relative to the largest singular value, damps directions in which the features hardly vary: along
    # them an exact solution would be huge.
    # Not `decomposed`: here the penalty is so small that the directions which that loses count.
    try:
        left, singular, right = np.linalg.svd(features, full_matrices=False)
    except np.linalg.LinAlgError:
        # LAPACK's divide and conquer does not converge on a few matrices, on whose transposes it does.
        turned, singular, left = np.linalg.svd(features.T, full_matrices=False)
        left, right = left.T, turned.T
    shrunk = singular / (singular**2 + penalty * singular[0] ** 2)
    return np.asarray(right.T @ (shrunk * left.sum(axis=0)), dtype=np.float64)


def solve_ridge(
    features: Floats, targets: Floats, alphas: Floats, *, times: Floats | None = None
) -> tuple[Floats, Floats]:
    """Returns (weight [k, d], bias [k]) of rows that each count `times` [n] times, by default once.

    features [n, d], targets [n, k] without a missing label, alphas [k]. The intercept bears no penalty. Solved in
    closed form with the smaller one of the two Gram matrices.
    """
    counts = np.ones(len(features)) if times is None else times
    share = counts / counts.sum()
    # Centring by the weighted means keeps the penalty off the intercept.
    centre, mean, root = share @ features, share @ targets, np.sqrt(counts)[:, None]
    rows, residuals = root * (features - centre), root * (targets - mean)
    # X'(XX' + aI)^-1 y equals (X'X + aI)^-1 X'y, so whichever matrix is smaller is solved.
    wide = rows.shape[0] < rows.shape[1]
    gram, aimed = (rows @ rows.T, residuals) if wide else (rows.T @ rows, rows.T @ residuals)
    solved = np.empty_like(aimed)  # [rows or columns, k]
    for alpha in np.unique(alphas):  # attributes with the same penalty share a factorisation
        solved[:, alphas == alpha] = np.linalg.solve(gram + alpha * np.eye(len(gram)), aimed[:, alphas == alpha])
    weight = (rows.T @ solved if wide else solved).T
    return weight, mean - weight @ centre


def labelled_alike(known: NDArray[np.bool_]) -> Iterator[Ints]:
    """Yields the columns of known [n, k] in groups that are known in the same rows, which can be solved together."""
    kinds = np.unique(known, axis=1, return_inverse=True)[1]
    for kind in range(kinds.max() + 1):
        yield np.flatnonzero(kinds == kind)


@dataclass(frozen=True)
class _Fit:
    weight: Floats
    bias: float
    alpha: float
    held_out_rmse: float
    left_out: Floats


@dataclass(frozen=True)
class _Decomposed:
    """Centred rows as left [n, rank] * singular [rank] @ right [rank, d], with their centre [d].

    `members` are the rows of every prompt, stacked by size; `numbers` [n] is the prompt of each row.
    """

    centre: Floats
    left: Floats
    singular: Floats
    right: Floats
    members: Sequence[Ints]
    numbers: Ints


def _decompose(features: Floats, groups: Ints) -> _Decomposed:
    """Returns the pieces of the features [n, d], which are centred in place."""
    centre = features.mean(axis=0)
    features -= centre
    left, singular, right = decomposed(features)
    numbers = np.unique(groups, return_inverse=True)[1]
    order = np.argsort(groups, kind="stable")
    rows = np.split(order, np.unique(groups[order], return_index=True)[1][1:])
    return _Decomposed(
        centre,
        left,
        singular,
        right,
        [np.stack([r for r in rows if len(r) == size]) for size in sorted({len(r) for r in rows})],
        numbers,
    )


def _fit(rows: _Decomposed, targets: Floats, alphas: Sequence[float]) -> _Fit:
    """Returns the ridge of one attribute with targets [n], which are all known."""
    mean = targets.mean()
    projected = rows.left.T @ (targets - mean)
    order = sorted(alphas, reverse=True)
    if len(rows.members) == 1 and len(rows.members[0]) == 1:
        # Nothing is left to fit on when the only prompt is left out.
        constant = np.full(len(targets), mean)
        return _Fit(np.zeros(rows.right.shape[1]), float(mean), order[0], float(targets.std()), constant)
    # Each penalty is a few products on top of the decomposition.
    errors = [_held_out(rows, projected, targets - mean, alpha) for alpha in order]
    chosen = most_cautious(np.stack([np.bincount(rows.numbers, row**2) for row in errors]))
    weight = rows.right.T @ (rows.singular / (rows.singular**2 + order[chosen]) * projected)
    rmse = float(np.sqrt(np.mean(errors[chosen] ** 2)))
    return _Fit(weight, float(mean - weight @ rows.centre), order[chosen], rmse, targets - errors[chosen])


def most_cautious(errors: Floats) -> int:
    """Returns the first row of errors [alphas, prompts] that is within CAUTION standard errors of the best one.

    The rows begin with the largest penalty. The differences are paired by prompt. On few prompts the very best penalty
    is one that fits their noise.
    """
    excess = errors - errors[errors.sum(axis=1).argmin()]
    tolerance = CAUTION * excess.std(axis=1) * np.sqrt(errors.shape[1])
    return int(np.flatnonzero(excess.sum(axis=1) <= tolerance)[0])


def _held_out(rows: _Decomposed, projected: Floats, centred: Floats, alpha: float) -> Floats:
    """[rows]: the exact errors on each prompt's rows of a ridge that was fitted without them.

    All come from the one fit on all rows: with H the smoother's matrix, the errors on a left-out group G are
    (I - H_GG)^-1 times its residuals. projected [rank], centred [rows].
    """
    shrink = rows.singular**2 / (rows.singular**2 + alpha)
    residuals = centred - rows.left @ (shrink * projected)
    errors = np.empty(len(centred))
    for groups in rows.members:
        # As many at a time as have at most BLOCK numbers in rows.left.
        for part in _parts(len(groups), groups.shape[1] * rows.left.shape[1]):
            group = groups[part]  # [groups of one size, size]
            left = rows.left[group]  # [groups, size, rank]
            # [groups, size, size]; 1/n is the intercept's part.
            hat = 1 / len(centred) + (left * shrink) @ left.transpose(0, 2, 1)
            kept = np.eye(group.shape[1]) - hat
            # The 1e-12 keeps a group that determines its own fit, where I - H is singular, from stopping the solver.
            solved = np.linalg.solve(kept + 1e-12 * np.eye(group.shape[1]), residuals[group][:, :, None])
            errors[group] = solved[:, :, 0]
    return errors
