"""PROTOCOL's rules of HelpSteer2, written once more and in another way than the product's."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

from tests.storm.journal import Ratings

BASE, MOST, KEPT, TOO_FAR = 3, 5, 3, 2


@dataclass(frozen=True)
class Given:
    """One annotation that counts."""

    number: int
    ratings: Ratings


def apart(given: Sequence[Given]) -> int:
    """The spread of helpfulness, on the response where it is larger."""
    columns = [[rating.ratings[response]["helpfulness"] for rating in given] for response in given[0].ratings]
    return max(max(column) - min(column) for column in columns)


def wanted(given: Sequence[Given]) -> int:
    return MOST if len(given) >= BASE and apart(given) > TOO_FAR else BASE


def kept(given: Sequence[Given]) -> list[Given]:
    """The three closest, in the order of submission: so the first of equals is the earliest."""
    threes = map(list, combinations(given, KEPT))
    return min(threes, key=lambda three: (apart(three), _squares(three)))


def _squares(three: Sequence[Given]) -> int:
    """The sum of squared differences of each pair is three times the sum of squares less the square of the sum."""
    cells = [(response, key) for response, scores in three[0].ratings.items() for key in scores]
    columns = [[rating.ratings[response][key] for rating in three] for response, key in cells]
    return sum(KEPT * sum(value**2 for value in column) - sum(column) ** 2 for column in columns)


def means(three: Sequence[Given]) -> dict[int, dict[str, Fraction]]:
    return {
        response: {key: Fraction(sum(rating.ratings[response][key] for rating in three), KEPT) for key in scores}
        for response, scores in three[0].ratings.items()
    }


def rounded(mean: Fraction) -> int:
    """Thirds are never half-way."""
    return int(mean + Fraction(1, 2))
