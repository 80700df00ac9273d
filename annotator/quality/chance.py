"""Computes how likely chance alone makes something stand out."""

from collections.abc import Sequence
from math import exp, fsum, lgamma, log


def at_least(successes: int, tries: int, probability: float) -> float:
    """Returns the exact binomial chance of so many successes or more."""
    if successes <= 0:
        return 1.0
    if not 0 < probability < 1:
        return float(probability >= 1)
    # Rounding may lift a sum of nearly all chances above 1.
    return min(1.0, fsum(_chance(number, tries, probability) for number in range(successes, tries + 1)))


def two_sided(heads: int, flips: int) -> float:
    """Returns the p-value of the exact sign test: the chance that a fair coin falls at least so unevenly."""
    return min(1.0, 2 * at_least(max(heads, flips - heads), flips, 0.5))


def _chance(successes: int, tries: int, probability: float) -> float:
    # By logarithms: the factorials of some hundreds of tries are beyond a float.
    ways = lgamma(tries + 1) - lgamma(successes + 1) - lgamma(tries - successes + 1)
    return exp(ways + successes * log(probability) + (tries - successes) * log(1 - probability))


def stand_out(chances: Sequence[float], *, rate: float) -> list[bool]:
    """Says which of many tests to believe, so that of these a share of at most `rate` is expected to be wrong.

    Source: Benjamini & Hochberg, "Controlling the false discovery rate", J. of the Royal Statistical Society B 57
    (1995) 289.
    """
    limits = ((chance, rate * (place + 1) / len(chances)) for place, chance in enumerate(sorted(chances)))
    largest = max((chance for chance, limit in limits if chance <= limit), default=-1.0)
    return [chance <= largest for chance in chances]
