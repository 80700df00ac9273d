"""The figures of agreement: kappa by attribute and by week, and how often each two ratings meet."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from django.utils.formats import date_format
from django.utils.translation import gettext as _

from annotator.analysis.agreement.reports import Agreement
from annotator.infrastructure.web.charts import Chart, ChartKind, Series
from annotator.models import Attribute
from annotator.templatetags.scales import level

WEEKS_DRAWN = 26
SHADES = 10


def by_attribute(
    attributes: Sequence[Attribute], selections: Sequence[tuple[str, Mapping[str, Agreement]]]
) -> Chart | None:
    """Returns kappa by attribute with its interval, a series for each selection; None if no kappa is defined."""
    series = []
    for name, estimates in selections:
        shown = [estimates[one.key] for one in attributes]
        ends = [estimate.interval or (None, None) for estimate in shown]
        lows, highs = [low for low, _high in ends], [high for _low, high in ends]
        series.append(Series(name, [one.kappa for one in shown], lows, highs))
    if not any(value is not None for one in series for value in one.values):
        return None
    return Chart(
        name="kappa",
        title=_("Weighted kappa by attribute"),
        kind=ChartKind.POINTS,
        places=[attribute.shown_name for attribute in attributes],
        series=series,
        place_label=_("Attribute"),
        value_label=_("Weighted kappa"),
        digits=3,
    )


def by_week(
    attributes: Sequence[Attribute],
    weeks: Sequence[tuple[date, Mapping[str, float | None]]],
    *,
    counts: Sequence[int] = (),
) -> Chart:
    """Returns kappa by week, a series for each attribute; `counts` are the responses of each week."""
    return Chart(
        name="agreement",
        title=_("Agreement by week"),
        kind=ChartKind.LINE,
        places=[day_name(monday) for monday, _kappas in weeks[-WEEKS_DRAWN:]],
        series=[
            Series(one.shown_name, [kappas.get(one.key) for _monday, kappas in weeks[-WEEKS_DRAWN:]])
            for one in attributes
        ],
        place_label=_("Week of"),
        value_label=_("Weighted kappa"),
        digits=2,
        counts=counts[-WEEKS_DRAWN:],
        count_label=_("Responses"),
    )


def day_name(day: date) -> str:
    """Returns the day without its year."""
    # Translators: a day without its year, in the letters of Django's date filter.
    return date_format(day, _("j M"))


@dataclass(frozen=True)
class ConfusionCell:
    """A cell's share of its row in per cent, None in an empty row, and its shade from 0 to SHADES - 1."""

    percent: float | None
    shade: int


def heat(confusion: Sequence[Sequence[int]]) -> list[tuple[int, int, list[ConfusionCell]]]:
    """Returns for each level how often it was given, and which ratings of the same responses it met."""
    rows = []
    for score, row in enumerate(confusion):
        total = sum(row)
        # A cell that holds its whole row would be one shade beyond the darkest.
        shades = [min(SHADES * count // total, SHADES - 1) if total else 0 for count in row]
        cells = [ConfusionCell(100 * n / total if total else None, shade) for n, shade in zip(row, shades, strict=True)]
        rows.append((level(score), total, cells))
    return rows
