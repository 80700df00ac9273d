"""Flags what stands out about an annotator, with its evidence. A flag asks somebody to look; nothing follows by itself.

The limits are meant for what a manager would want to look at, not for half of the people: a flag has to be both clear
in size and beyond chance.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import exp, fsum, lgamma, log
from statistics import median
from typing import Any

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _

FEWEST = 20
"""The fewest annotations, ratings or preferences from which anything is concluded."""
BY_CHANCE = 0.001
"""The chance that may remain that any annotator of the project at all is flagged by accident."""
HURRIED_SHARE = 0.2
FEWEST_HURRIED = 4
"""Nobody reads so fast by chance, so a few such tasks are enough."""
FLAT_SHARE = 0.3
FLAT_ABOVE = 0.2
LEAST_CHANCE = 0.02
"""The least probability that is assumed for one score throughout, however seldom the few others do it."""
SHORTEST_RUN = 8
SIDE_SHARE = 0.1
SIDES_WRONG = 0.01
"""The share of flags for a preferred side that chance may cause."""
LOW_KAPPA = 0.2
KAPPA_BELOW = 0.2
LEANING = 0.75
ERRORS = 4
"""The fewest standard errors by which a leaning or a drift must differ from 0."""
SCATTER_RATIO = 1.3
AT_CHANCE = 0.5
"""Whoever follows the others by less than this share of what is usual, beyond doubt, is near to guessing."""
ABOVE_CHANCE = 3
"""The standard errors by which a rater must follow the others before anybody may say that they do not guess."""
DRIFT = 0.5


class FlagKind(TextChoices):
    SPEEDING = "speeding", _("Hurried")
    STRAIGHT_LINING = "straight_lining", _("Same score everywhere")
    REPEATING = "repeating", _("Identical ratings in a row")
    POSITION = "position", _("Prefers one side")
    DISAGREEING = "disagreeing", _("Disagrees with the others")
    LEANING = "leaning", _("Rates higher or lower than the others")
    SCATTERING = "scattering", _("Ratings scatter")
    DRIFTING = "drifting", _("Ratings have drifted")


@dataclass(frozen=True)
class Flag:
    """One flag: `evidence` holds the numbers of its sentence, `examples` the ids of tasks to look at."""

    kind: FlagKind
    evidence: Mapping[str, Any]
    examples: Sequence[int] = ()


@dataclass(frozen=True)
class Measured:
    """One annotator's measures as they are stored, and for each kind of flag the tasks that show it best."""

    measures: Mapping[str, Any]
    examples: Mapping[FlagKind, Sequence[int]] = field(default_factory=dict)


def flagged(everybody: Sequence[Measured]) -> list[list[Flag]]:
    """Returns the flags of each of a project's annotators, in their order."""
    kappas = [person.measures["kappa"] for person in everybody]
    slopes = [
        person.measures["accord"]["slope"]
        if person.measures.get("accord") and person.measures["ratings"] >= FEWEST
        else None
        for person in everybody
    ]
    scatters = [_scatter(person.measures) for person in everybody]
    sided = stand_out([_chance_of_side(person.measures["position"]) for person in everybody], rate=SIDES_WRONG)
    # Bonferroni: the more annotators are tested, the more would be flagged by accident.
    unlikely = BY_CHANCE / max(len(everybody), 1)
    flags = []
    for place, person in enumerate(everybody):
        usual_kappa, usual_slope, usual_scatter = (_usual(values, place) for values in (kappas, slopes, scatters))
        single = [
            *_speeding(person.measures["speed"]),
            *_straight_lining(person.measures["sameness"], unlikely),
            *_repeating(person.measures["repeats"], unlikely),
            *(_position(person.measures["position"]) if sided[place] else ()),
            *_disagreeing(person.measures, usual_kappa, usual_slope),
            *_leaning(person.measures),
            *_scattering(person.measures, usual_scatter),
            *_drifting(person.measures["drift"]),
        ]
        flags.append([Flag(kind, evidence, person.examples.get(kind, ())) for kind, evidence in single])
    return flags


def is_too_few(measures: Mapping[str, Any]) -> bool:
    """Says whether the ratings that others share are too few to tell this annotator from one who guesses."""
    accord = measures["accord"]
    return measures["ratings"] < FEWEST or not accord or accord["slope"] <= ABOVE_CHANCE * accord["error"]


def _usual(values: Sequence[float | None], place: int) -> float | None:
    """Returns the median of the others' values, which a few bad raters do not move."""
    others = [value for other, value in enumerate(values) if other != place and value is not None]
    return median(others) if others else None


def _scatter(measures: Mapping[str, Any]) -> float | None:
    """Returns the median over the attributes, or None where too few ratings say anything."""
    levels = [measure["levels"] for measure in measures["scatter"].values() if measure]
    return median(levels) if levels and measures["ratings"] >= FEWEST else None


Found = Iterator[tuple[FlagKind, Mapping[str, Any]]]


def _speeding(speed: Mapping[str, Any]) -> Found:
    timed, hurried = speed["timed"], speed["hurried"]
    if hurried >= max(FEWEST_HURRIED, HURRIED_SHARE * timed):
        yield FlagKind.SPEEDING, {"hurried": hurried, "timed": timed, "seconds": speed["median_seconds"]}


def _straight_lining(sameness: Mapping[str, Any], unlikely: float) -> Found:
    tasks, flat, others = sameness["compared"], sameness["flat"], sameness["others"]
    if tasks < FEWEST or flat < FLAT_SHARE * tasks or flat < (others + FLAT_ABOVE) * tasks:
        return
    if at_least(flat, tasks, max(others, LEAST_CHANCE)) < unlikely:
        yield FlagKind.STRAIGHT_LINING, {"flat": flat, "tasks": tasks, "others": others}


def _repeating(repeats: Mapping[str, Any], unlikely: float) -> Found:
    longest, tasks = repeats["longest"], repeats["tasks"]
    if longest < SHORTEST_RUN or repeats["alike"] is None:
        return
    # A run may begin at any of the tasks, so its chance is at most their number times that of one run.
    alike = max(repeats["alike"], LEAST_CHANCE)
    if tasks * alike ** (longest - 1) < unlikely:
        yield FlagKind.REPEATING, {"longest": longest, "alike": repeats["alike"]}


def _chance_of_side(position: Mapping[str, Any]) -> float:
    return two_sided(position["first"], position["preferences"]) if position["preferences"] >= FEWEST else 1.0


def _position(position: Mapping[str, Any]) -> Found:
    share = position["first"] / position["preferences"]
    if abs(share - 0.5) >= SIDE_SHARE:
        yield FlagKind.POSITION, dict(position) | {"chance": _chance_of_side(position)}


def _disagreeing(measures: Mapping[str, Any], usual: float | None, usual_slope: float | None) -> Found:
    kappa, shared = measures["kappa"], measures["shared"]
    if kappa is None or shared < FEWEST or usual is None:
        return
    is_low = kappa < LOW_KAPPA and kappa <= usual - KAPPA_BELOW
    accord = measures.get("accord")
    is_near_chance = accord and usual_slope and accord["slope"] + ERRORS * accord["error"] < AT_CHANCE * usual_slope
    if is_low or (kappa < AT_CHANCE * usual and is_near_chance):
        yield FlagKind.DISAGREEING, {"kappa": kappa, "usual": usual, "shared": shared}


def _leaning(measures: Mapping[str, Any]) -> Found:
    # Each attribute by itself: leaning on verbosity and on correctness are mistakes of different kinds.
    if measures["ratings"] < FEWEST:
        return
    leaning = {
        key: measure["levels"]
        for key, measure in measures["leaning"].items()
        if measure and abs(measure["levels"]) >= max(LEANING, ERRORS * measure["error"])
    }
    if leaning:
        yield FlagKind.LEANING, {"levels": leaning, "ratings": measures["ratings"]}


def _scattering(measures: Mapping[str, Any], usual: float | None) -> Found:
    levels = _scatter(measures)
    if levels is not None and usual and levels >= SCATTER_RATIO * usual:
        yield FlagKind.SCATTERING, {"levels": levels, "usual": usual, "ratings": measures["ratings"]}


def _drifting(drift: Mapping[str, Any] | None) -> Found:
    if drift and drift["tasks"] >= 2 * FEWEST and abs(drift["levels"]) >= max(DRIFT, ERRORS * drift["error"]):
        yield FlagKind.DRIFTING, drift


# Chance ------------------------------------------------------------------------------------------------------


def at_least(successes: int, tries: int, probability: float) -> float:
    """Returns the exact binomial chance of so many successes or more."""
    if successes <= 0:
        return 1.0
    if not 0 < probability < 1:
        return float(probability >= 1)
    # Rounding may lift a sum of nearly all chances above 1.
    # By logarithms: the factorials of some hundreds of tries are beyond a float.
    yes, no = log(probability), log(1 - probability)
    chances = (
        exp(lgamma(tries + 1) - lgamma(n + 1) - lgamma(tries - n + 1) + n * yes + (tries - n) * no)
        for n in range(successes, tries + 1)
    )
    return min(1.0, fsum(chances))


def two_sided(heads: int, flips: int) -> float:
    """Returns the p-value of the exact sign test: the chance that a fair coin falls at least so unevenly."""
    return min(1.0, 2 * at_least(max(heads, flips - heads), flips, 0.5))


def stand_out(chances: Sequence[float], *, rate: float) -> list[bool]:
    """Says which of many tests to believe, so that of these a share of at most `rate` is expected to be wrong.

    Source: Benjamini & Hochberg, "Controlling the false discovery rate", J. of the Royal Statistical Society B 57
    (1995) 289.
    """
    limits = ((chance, rate * (place + 1) / len(chances)) for place, chance in enumerate(sorted(chances)))
    largest = max((chance for chance, limit in limits if chance <= limit), default=-1.0)
    return [chance <= largest for chance in chances]
