"""Describes charts, which static/js/charts.js draws; the table behind each one stands on the page without scripts too.

Numbers are kept apart from how they are drawn: templates/_chart.html writes them as a table and as JSON.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from annotator.infrastructure.web.numbers import UNDEFINED, number

Values = Sequence[float | None]


class ChartKind(StrEnum):
    LINE = "line"
    BAR = "bar"
    STACKED = "stacked"
    """Bars whose parts stand on each other."""
    POINTS = "points"
    """Places from top to bottom, values from left to right, each with its interval."""


@dataclass(frozen=True)
class Series:
    """One row of values, a value for each place of the chart (None: nothing known), and the ends of their intervals."""

    name: str
    values: Values
    low: Values = ()
    high: Values = ()

    def cell(self, place: int, digits: int) -> str:
        """Returns the value with its interval, as people read it."""
        value = number(self.values[place], digits)
        if value == UNDEFINED or not self.low or self.low[place] is None:
            return value
        return f"{value} ({number(self.low[place], digits)}\N{EN DASH}{number(self.high[place], digits)})"


@dataclass(frozen=True)
class Chart:
    """A figure: `places` name what each value is of, such as days, levels or people.

    `name` is unique on the page, and the name of the files that can be downloaded. `note` stands beneath the title.
    """

    name: str
    title: str
    kind: ChartKind
    places: Sequence[str]
    series: Sequence[Series]
    place_label: str = ""
    value_label: str = ""
    note: str = ""
    digits: int = 0
    minimum: float | None = None
    maximum: float | None = None
    marks: dict[str, float] = field(default_factory=dict)
    """Values that are marked by a line across the chart, by their names."""
    counts: Sequence[int] = ()
    """How many things the values of each place are of: a column of the table that is not drawn, named `count_label`."""
    count_label: str = ""

    def drawing(self) -> dict[str, Any]:
        """Returns what the script draws."""
        return asdict(self)

    def rows(self) -> Iterator[tuple[str, list[str]]]:
        """Yields the rows of the table: a place, its count if there are counts, and its value in each series."""
        for place, name in enumerate(self.places):
            count = [number(self.counts[place], 0)] if self.counts else []
            yield name, [*count, *(series.cell(place, self.digits) for series in self.series)]
