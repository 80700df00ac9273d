"""Computes quadratic-weighted Cohen's kappa of two given raters, and of an annotator with the experts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, pvariance

NO_VARIANCE = 1e-12
"""A variance of at most this is 0 apart from rounding: every rating is the same."""


def paired_kappa(pairs: Sequence[tuple[int, int]]) -> float | None:
    """Returns quadratic-weighted Cohen's kappa of two given raters, from (one, other) scores of the same samples.

    It is 1 - mean[(a - b)^2] / mean over all samples i, j of (a_i - b_j)^2, and None if both raters give the same
    score throughout.
    """
    if not pairs:
        return None
    ones, others = zip(*pairs, strict=True)
    by_chance = pvariance(ones) + pvariance(others) + (fmean(ones) - fmean(others)) ** 2
    return kappa_of_means(fmean((a - b) ** 2 for a, b in pairs), by_chance)


def kappa_of_means(squared_difference: float, by_chance: float) -> float | None:
    """Returns kappa from the mean squared difference that was observed and the one that chance alone would give."""
    return None if by_chance <= NO_VARIANCE else 1 - squared_difference / by_chance


@dataclass(frozen=True)
class AgainstExperts:
    """Kappa with the experts by attribute; None for an attribute to which the experts give the same score throughout.

    `identical` says that every score equals the experts'.
    """

    kappas: Mapping[str, float | None]
    identical: bool

    @property
    def mean(self) -> float | None:
        """The mean kappa over the attributes for which it is defined."""
        defined = [kappa for kappa in self.kappas.values() if kappa is not None]
        return fmean(defined) if defined else None


def against_experts(rated: Sequence[tuple[Mapping[str, int], Mapping[str, int]]]) -> AgainstExperts:
    """Compares somebody's scores with the experts', attribute by attribute, over the responses that both rated."""
    pairs: dict[str, list[tuple[int, int]]] = {}
    for mine, experts in rated:
        for key, score in experts.items():
            if key in mine:
                pairs.setdefault(key, []).append((mine[key], score))
    # Where the experts never vary, a single deviation makes kappa 0: it would measure the choice of gold tasks, not
    # the annotator.
    kappas = {key: paired_kappa(both) if len({b for _, b in both}) > 1 else None for key, both in pairs.items()}
    return AgainstExperts(kappas, identical=all(a == b for both in pairs.values() for a, b in both))
