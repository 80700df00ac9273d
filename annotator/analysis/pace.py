"""Predicts when a project's tasks will be complete from the annotations of the last days. Reads no rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from math import ceil, sqrt
from statistics import fmean, stdev

FEWEST_DAYS = 3
FARTHEST = timedelta(days=3_650)
# Student's t, 95 %, by degrees of freedom: of few days the mean is uncertain.
_T95 = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13)
_T95_OF_MANY = 2.05


@dataclass(frozen=True)
class Outlook:
    """The annotations a day, and the day by which `remaining` are made at that pace.

    `earliest` and `latest` belong to the ends of the 95 % interval of the pace; `latest` is None if such slow
    work would take more than ten years. `days` of work were looked at.
    """

    per_day: float
    days: int
    remaining: int
    expected: date | None
    earliest: date | None
    latest: date | None


def outlook(per_day: Sequence[int], *, remaining: int, today: date) -> Outlook | None:
    """Returns the outlook from the daily counts, oldest first, days without work included, or None of too few days."""
    first = next((place for place, number in enumerate(per_day) if number), len(per_day))
    counts = per_day[first:]
    if len(counts) < FEWEST_DAYS or not any(counts):
        return None
    mean = fmean(counts)
    freedom = len(counts) - 1
    factor = _T95[freedom - 1] if freedom <= len(_T95) else _T95_OF_MANY
    half = factor * stdev(counts) / sqrt(len(counts))
    return Outlook(
        per_day=mean,
        days=len(counts),
        remaining=remaining,
        expected=_day(today, remaining, mean),
        earliest=_day(today, remaining, mean + half),
        latest=_day(today, remaining, mean - half),
    )


def _day(today: date, remaining: int, per_day: float) -> date | None:
    if per_day <= 0 or remaining / per_day > FARTHEST.days:
        return None
    return today + timedelta(days=ceil(remaining / per_day))


def still_expected(*, wanted: int, untested: int, base: int, most: int, escalated: float) -> int:
    """Returns the annotations still needed: those that open tasks want, and what escalations will add to them."""
    return wanted + round(untested * (most - base) * escalated)
