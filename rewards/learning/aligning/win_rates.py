"""Compares the rewards of a policy's answers with those of its base's, prompt by prompt, with and without the length.

The length-controlled rate is that of AlpacaEval 2 (Dubois et al. 2024, arXiv 2404.04475, section 3) without its term
for the difficulty of an instruction, which several models must share: the logistic regression

    P(the policy wins) = s(a + b x),  x = tanh(d / std(d)),

with d the policy's length minus the base's, and s(a) the share that would be won at equal lengths. Both coefficients
have the penalty PENALTY / 2 (a^2 + b^2), without which a policy that always wins would have none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rewards.learning.data import Floats
from rewards.learning.intervals import Interval, by_prompt, of_share
from rewards.learning.pairs import in_order

PENALTY = 0.01
MOST_STEPS = 50
SETTLED = 1e-10


@dataclass(frozen=True)
class WinRates:
    """The share of prompts on which the policy's answer has the higher reward, a tie counting half; 95 % intervals.

    An interval is None where too few prompts define it.
    """

    prompts: int
    ties: int
    win_rate: float
    win_rate_interval: Interval | None
    length_controlled: float
    length_controlled_interval: Interval | None


def win_rates(policy: Floats, base: Floats, *, longer_by: Floats) -> WinRates:
    """Returns the rates of rewards [prompts] of both, whose answers' lengths [prompts] differ by `longer_by`.

    Intervals are drawn over prompts; each prompt was answered once by either.
    """
    wins = in_order(policy - base)
    prompts = [str(place) for place in range(len(wins))]
    lengths = length_terms(longer_by)
    controlled = by_prompt(prompts, lambda weights: {"rate": length_controlled(wins, lengths, weights)})
    return WinRates(
        prompts=len(wins),
        ties=int((policy == base).sum()),
        win_rate=float(wins.mean()),
        win_rate_interval=of_share(wins, prompts).get("accuracy"),
        length_controlled=length_controlled(wins, lengths, np.ones(len(wins))),
        length_controlled_interval=controlled.get("rate"),
    )


def length_terms(longer_by: Floats) -> Floats:
    """[prompts]: tanh(d / std(d)); 0 throughout where all differences are alike, so that nothing is controlled for."""
    spread = float(longer_by.std())
    return np.tanh(longer_by / spread) if spread > 0 else np.zeros(len(longer_by))


def length_controlled(wins: Floats, lengths: Floats, weights: Floats) -> float:
    """Returns the share that would be won at equal lengths, by Newton's method.

    wins [prompts]: 1, 0, or 0.5 for a tie. lengths [prompts]: the regression's x. weights [prompts]: how often each
    prompt counts.
    """
    terms = np.stack([np.ones(len(wins)), lengths], axis=1)
    coefficients = np.zeros(2)
    for _ in range(MOST_STEPS):
        predicted = _logistic(terms @ coefficients)
        gradient = terms.T @ (weights * (wins - predicted)) - PENALTY * coefficients
        curvature = (terms * (weights * predicted * (1 - predicted))[:, None]).T @ terms + PENALTY * np.eye(2)
        step = np.linalg.solve(curvature, gradient)
        # Far from the optimum the curvature vanishes, and a whole step would leap past it.
        coefficients = coefficients + step / max(1.0, float(np.abs(step).max()))
        if np.abs(step).max() < SETTLED:
            break
    return float(_logistic(coefficients[:1])[0])


def _logistic(values: Floats) -> Floats:
    # By the hyperbolic tangent, which does not overflow.
    return np.asarray(0.5 * (1 + np.tanh(values / 2)))
