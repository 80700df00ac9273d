"""The page that says which of the rated models is best: by ratings, by preferences and by the reward model."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from annotator.infrastructure.web.charts import Chart, ChartKind, Series
from annotator.models import Attribute
from annotator.reading import access
from annotator.reading.access import user_of
from rewards.leaderboard.model_ranking import Estimate, RankedModel, Ranking
from rewards.leaderboard.rated_models import RatedModels, both_orders, rated_models


@dataclass(frozen=True)
class Part:
    """A ranking as the page shows it: rows of names with their standings, the chart, and what limits it."""

    key: str
    rows: Sequence[tuple[str, RankedModel]]
    chart: Chart | None
    pairs: int
    ties: int
    length: Estimate | None
    groups: Sequence[str]
    sentence: str


@require_GET
def model_ranking(request: HttpRequest, slug: str) -> HttpResponse:
    """Shows the models whose responses were rated, side by side."""
    project = access.reviewed_project(user_of(request), slug)
    rated = rated_models(project)
    attributes = project.attributes_for()
    page = {
        "project": project,
        "rated": rated,
        "has_means": any(rated.means.values()),
        "attributes": attributes,
        "means": [(name, [rated.means[name].get(attribute.key) for attribute in attributes]) for name in rated.names],
        "charts": [chart for attribute in attributes if (chart := _means_chart(rated, attribute))],
        "orders": both_orders(rated),
        "people": _part("people", _("Win rates by people"), rated, rated.people),
        "champion": _part("champion", _("Win rates by the reward model"), rated, rated.champion),
    }
    return render(request, "workspace/model_ranking.html", page)


def _means_chart(rated: RatedModels, attribute: Attribute) -> Chart | None:
    known = [(name, rated.means[name][attribute.key]) for name in rated.names if attribute.key in rated.means[name]]
    if not known:
        return None
    best_first = sorted(known, key=lambda one: -one[1].value)
    # Scores count from 0 in the rows and from 1 on the pages.
    return Chart(
        name=f"mean-{attribute.key}",
        title=attribute.shown_name,
        kind=ChartKind.POINTS,
        places=[name for name, _estimate in best_first],
        series=[_series(_("mean level"), [estimate for _name, estimate in best_first], plus=1)],
        place_label=_("Model"),
        value_label=_("Mean level, of %(levels)s") % {"levels": len(attribute.levels)},
        digits=2,
    )


def _series(name: str, estimates: Sequence[Estimate], *, plus: float = 0, times: float = 1) -> Series:
    def moved(values: Sequence[float | None]) -> list[float | None]:
        return [None if value is None else value * times + plus for value in values]

    low, high = [estimate.low for estimate in estimates], [estimate.high for estimate in estimates]
    return Series(name, moved([estimate.value for estimate in estimates]), moved(low), moved(high))


def _part(key: str, title: str, rated: RatedModels, ranked: Ranking) -> Part:
    rows = [(rated.names[standing.model], standing) for standing in ranked.standings]
    chart = None
    if rows:
        chart = Chart(
            name=f"wins-{key}",
            title=title,
            kind=ChartKind.POINTS,
            places=[name for name, _standing in rows],
            series=[
                _series(_("at equal lengths"), [standing.fair for _name, standing in rows], times=100),
                _series(_("as it is"), [standing.wins for _name, standing in rows], times=100),
            ],
            place_label=_("Model"),
            value_label=_("Win rate in %"),
            digits=1,
            marks={"": 50.0},
        )
    groups: dict[int, list[str]] = {}
    for name, standing in rows:
        groups.setdefault(standing.group, []).append(name)
    apart = [", ".join(names) for names in groups.values()] if len(groups) > 1 else []
    return Part(key, rows, chart, ranked.pairs, ranked.ties, ranked.length, apart, _sentence(rows, apart))


def _sentence(rows: Sequence[tuple[str, RankedModel]], apart: Sequence[str]) -> str:
    """Returns which model is ahead, and whether that may be chance."""
    if len(rows) < 2 or apart:
        return ""
    (best, first), (second, next_best) = rows[0], rows[1]
    names = {"best": best, "second": second}
    if first.fair.low is None or next_best.fair.high is None:
        return _("At equal lengths, “%(best)s” is ahead, but there are too few prompts to rule out chance.") % names
    if first.fair.low > next_best.fair.high:
        return _("At equal lengths, “%(best)s” is ahead of all others, by more than chance would explain.") % names
    said = _(
        "At equal lengths, “%(best)s” is ahead, but its interval overlaps with that of "
        "“%(second)s”: this may be chance."
    )
    return said % names
