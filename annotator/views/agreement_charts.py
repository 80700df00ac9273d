"""What the agreement page draws: kappa over weeks, and which ratings meet. Whole numbers, as SVG reads no commas."""

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
"""Of a plot: kappa 1 stands at TOP, 0 and whatever is below it at FOOT."""
SHADES = 10


@dataclass(frozen=True)
class Plot:
    """One attribute's kappas by week, `points` in their order; `text` says in words what it shows."""

    attribute: Attribute
    points: Sequence[tuple[int, int]]
    first: date
    last: date
    text: str

    @property
    def line(self) -> str:
        return " ".join(f"{x},{y}" for x, y in self.points)


def plot(attribute: Attribute, weeks: Sequence[Week]) -> Plot | None:
    """The drawing of kappa by week; None if no week has one."""
    drawn = weeks[-WEEKS_DRAWN:]
    known = [(week.monday, kappa) for week in drawn if (kappa := week.kappa[attribute.key]) is not None]
    if not known:
        return None
    first, last = known[0][0], known[-1][0]
    days = max((last - first).days, 1)
    kappas = [kappa for _monday, kappa in known]
    numbers = {"low": min(kappas), "high": max(kappas), "last": kappas[-1]}
    shown = {name: number(value) for name, value in numbers.items()}
    return Plot(
        attribute=attribute,
        points=[
            (round(LEFT + 8 + (RIGHT - LEFT - 16) * (day - first).days / days), _height(kappa)) for day, kappa in known
        ],
        first=first,
        last=last,
        text=_("Weighted kappa of %(attribute)s by week: between %(low)s and %(high)s, %(last)s in the latest.")
        % (shown | {"attribute": _(attribute.name)}),
    )


def _height(kappa: float) -> int:
    return round(FOOT - (FOOT - TOP) * min(max(kappa, 0), 1))


@dataclass(frozen=True)
class Cell:
    """A share of its row in per cent, and its shade from 0 to SHADES - 1; nothing where the row is empty."""

    percent: float | None
    shade: int


def heat(confusion: Sequence[Sequence[int]]) -> list[tuple[int, int, list[Cell]]]:
    """By level: how often it was given, and which ratings of the same responses it met."""
    return [(level(score), sum(row), [_cell(count, sum(row)) for count in row]) for score, row in enumerate(confusion)]


def _cell(count: int, total: int) -> Cell:
    if not total:
        return Cell(None, 0)
    return Cell(100 * count / total, min(SHADES * count // total, SHADES - 1))
