"""Rankings as tiers of response ids, the best first, and as the pairs that follow from them. Pure.

A ranking says of any two responses which is better, or that they are tied: a strength of -1, 1 or 0, as a preference
has one of -3 to 3. HelpSteer2 has no rankings; that the rules of its preferences hold for each pair is ours.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations

Ranking = Sequence[Sequence[int]]
Pair = tuple[int, int]
"""Two responses, the better one first."""


def tiers(ranking: Ranking) -> list[list[int]]:
    """The ranking in the form that is stored: the order within a tier says nothing, so ids are sorted."""
    return [sorted(tier) for tier in ranking]


def tiers_of_ranks(ranks: Mapping[int, int]) -> list[list[int]]:
    """The ranking in which responses of one rank are tied, the lowest rank first."""
    return [
        sorted(response for response, rank in ranks.items() if rank == wanted) for wanted in sorted(set(ranks.values()))
    ]


def ranks_of(ranking: Ranking) -> dict[int, int]:
    """The rank of each response, from 1."""
    return {response: rank for rank, tier in enumerate(ranking, 1) for response in tier}


def pairs_of(ranking: Ranking) -> list[Pair]:
    """Every two responses of different tiers."""
    return [(better, worse) for upper, lower in combinations(tiers(ranking), 2) for better in upper for worse in lower]


def agreed_pairs(rankings: Sequence[Ranking], agreed: Callable[[Sequence[int]], int | None]) -> tuple[Pair, ...]:
    """The pairs that people tell apart: `agreed` makes one strength of everybody's, in the order of submission.

    Negative is for the response with the lower id, as it is for the first of two.
    """
    by_pair: dict[Pair, list[int]] = defaultdict(list)
    for ranking in rankings:
        for (one, rank_of_one), (other, rank_of_other) in combinations(sorted(ranks_of(ranking).items()), 2):
            by_pair[one, other].append((rank_of_one > rank_of_other) - (rank_of_one < rank_of_other))
    strengths = ((pair, agreed(given)) for pair, given in by_pair.items())
    return tuple((one, other) if strength < 0 else (other, one) for (one, other), strength in strengths if strength)


def ranking_of(pairs: Iterable[Pair], responses: Sequence[int]) -> list[list[int]]:
    """The responses by wins less losses (Copeland 1951), equal ones tied: pairs alone may go round in a circle."""
    balance = dict.fromkeys(responses, 0)
    for better, worse in pairs:
        balance[better] += 1
        balance[worse] -= 1
    return tiers_of_ranks({response: -won for response, won in balance.items()})
