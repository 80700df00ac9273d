"""Converts rankings between tiers of response ids (the best first), ranks and pairs. Reads and writes no rows.

For any two responses a ranking says which one is better, or that they are tied: a strength of -1, 1 or 0, where a
preference has one of -3 to 3. HelpSteer2 has no rankings; that its rules for preferences apply to each pair is our
choice.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations

Ranking = Sequence[Sequence[int]]
Pair = tuple[int, int]
"""Two responses, the better one first."""


def tiers(ranking: Ranking) -> list[list[int]]:
    """Returns the ranking in its stored form: the order within a tier carries no meaning, so its ids are sorted."""
    return [sorted(tier) for tier in ranking]


def tiers_of_ranks(ranks: Mapping[int, int]) -> list[list[int]]:
    """Returns the ranking that ties responses of equal rank and puts the lowest rank first; ranks may have gaps."""
    return [
        sorted(response for response, rank in ranks.items() if rank == tier_rank)
        for tier_rank in sorted(set(ranks.values()))
    ]


def ranks_of(ranking: Ranking) -> dict[int, int]:
    """Returns the rank of each response, counted from 1."""
    return {response: rank for rank, tier in enumerate(ranking, 1) for response in tier}


def pairs_of(ranking: Ranking) -> list[Pair]:
    """Returns every pair of responses from different tiers. Tied responses make no pair."""
    return [(better, worse) for upper, lower in combinations(tiers(ranking), 2) for better in upper for worse in lower]


def pairs_in_force(settled: Ranking | None, agreed: Iterable[Sequence[int]] | None) -> list[Pair] | None:
    """Returns the pairs of the reviewer's ranking, else those on which the rankings agree; None if there are neither.

    `agreed` is what PAIRS_IN_FORCE reads.
    """
    if settled:
        return pairs_of(settled)
    return None if agreed is None else [(better, worse) for better, worse in agreed]


def agreed_pairs(rankings: Sequence[Ranking], agreed: Callable[[Sequence[int]], int | None]) -> tuple[Pair, ...]:
    """Returns the pairs on which the rankings agree, the better response first; tied pairs are left out.

    `rankings` are in the order of submission. `agreed` combines the strengths that they give one pair into a single
    strength, or None. A negative strength favours the response with the lower id, as it favours the first of two
    responses in a preference.
    """
    by_pair: dict[Pair, list[int]] = defaultdict(list)
    for ranking in rankings:
        # Sorted by id, so that every ranking files a pair under the same key and with the same sign.
        for (first, first_rank), (second, second_rank) in combinations(sorted(ranks_of(ranking).items()), 2):
            by_pair[first, second].append((first_rank > second_rank) - (first_rank < second_rank))
    combined = ((pair, agreed(strengths)) for pair, strengths in by_pair.items())
    return tuple(
        (first, second) if strength < 0 else (second, first) for (first, second), strength in combined if strength
    )


def ranking_of(pairs: Iterable[Pair], responses: Sequence[int]) -> list[list[int]]:
    """Ranks the responses by wins minus losses (Copeland 1951); responses with equal balances are tied.

    The pairs alone may form a cycle (A over B, B over C, C over A), so they do not always define an order.
    """
    balance = dict.fromkeys(responses, 0)
    for better, worse in pairs:
        balance[better] += 1
        balance[worse] -= 1
    # The lowest rank is the best one, so the balance changes its sign.
    return tiers_of_ranks({response: -surplus for response, surplus in balance.items()})
