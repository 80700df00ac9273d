"""The charts of the agreement page: kappa over weeks, and how often each two ratings meet.

Coordinates are whole numbers: a locale may write others with a comma, which SVG does not read.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from django.utils.translation import gettext as _

from annotator.agreement import Week
from annotator.models import Attribute
from annotator.templatetags.scales import level
from annotator.web.numbers import number

WEEKS_DRAWN = 26
LEFT, RIGHT, TOP, FOOT = 30, 312, 10, 100
"""The edges of a plot: kappa 1 is drawn at TOP, 0 and everything below it at FOOT."""
SHADES = 10


@dataclass(frozen=True)
class Plot:
    """One attribute's kappas by week, as `points` in the order of time; `text` says in words what the plot shows."""

    attribute: Attribute
    points: Sequence[tuple[int, int]]
    first: date
    last: date
    text: str

    @property
    def line(self) -> str:
        return " ".join(f"{x},{y}" for x, y in self.points)


def plot(attribute: Attribute, weeks: Sequence[Week]) -> Plot | None:
    """Returns the plot of kappa by week, or None if no week has a kappa."""
    drawn = weeks[-WEEKS_DRAWN:]
    known = [(week.monday, kappa) for week in drawn if (kappa := week.kappa[attribute.key]) is not None]
    if not known:
        return None
    first, last = known[0][0], known[-1][0]
    # A single week spans no days, and the points below are placed by dividing by them.
    days = max((last - first).days, 1)
    kappas = [kappa for _monday, kappa in known]
    numbers = {"low": min(kappas), "high": max(kappas), "last": kappas[-1]}
    formatted = {name: number(value) for name, value in numbers.items()}
    return Plot(
        attribute=attribute,
        points=[
            (round(LEFT + 8 + (RIGHT - LEFT - 16) * (day - first).days / days), _height(kappa)) for day, kappa in known
        ],
        first=first,
        last=last,
        text=_("Weighted kappa of %(attribute)s by week: between %(low)s and %(high)s, %(last)s in the latest.")
        % (formatted | {"attribute": _(attribute.name)}),
    )


def _height(kappa: float) -> int:
    return round(FOOT - (FOOT - TOP) * min(max(kappa, 0), 1))


@dataclass(frozen=True)
class Cell:
    """A cell's share of its row in per cent, None in an empty row, and its shade from 0 to SHADES - 1."""

    percent: float | None
    shade: int


def heat(confusion: Sequence[Sequence[int]]) -> list[tuple[int, int, list[Cell]]]:
    """Returns for each level how often it was given, and which ratings of the same responses it met."""
    return [(level(score), sum(row), [_cell(count, sum(row)) for count in row]) for score, row in enumerate(confusion)]


def _cell(count: int, total: int) -> Cell:
    if not total:
        return Cell(None, 0)
    # A cell that holds its whole row would be one shade beyond the darkest.
    return Cell(100 * count / total, min(SHADES * count // total, SHADES - 1))
