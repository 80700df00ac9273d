"""The charts of a project's overview, drawn from its figures; what HelpSteer2 published stands beside them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import accumulate

from django.utils.translation import gettext as _

from annotator.analysis.figures import Figures, last_days
from annotator.analysis.helpsteer2 import Published, published
from annotator.infrastructure.web.charts import Chart, ChartKind, Series
from annotator.models import NEITHER_VALID, TIE, Attribute, Project, SkipReason
from annotator.pages.projects import agreement_charts
from annotator.pages.projects.agreement_charts import day_name
from annotator.templatetags.scales import level

PEOPLE_DRAWN = 8
DAYS_DRAWN = 60


def work(figures: Figures, names: Callable[[int], str]) -> Iterator[Chart]:
    """Yields the charts of progress and pace."""
    if figures.tasks:
        yield _tasks_over_time(figures)
    if figures.annotations:
        yield _annotations_by_person(figures, names)
    if figures.skips:
        yield _skips(figures)


def labels(project: Project, figures: Figures) -> Iterator[Chart]:
    """Yields the charts of what the labels and preferences look like."""
    attributes = project.attributes_for()
    # The figures may have been counted with other attributes than the project has now.
    if all(one.key in figures.levels and len(figures.levels[one.key].counts) == len(one.levels) for one in attributes):
        attributes = [one for one in attributes if sum(figures.levels[one.key].counts)]
    else:
        attributes = []
    if attributes:
        yield _distribution(attributes, figures)
        yield _means(attributes, figures)
    if figures.preferences:
        yield _preferences(figures)


def agreement(project: Project, figures: Figures) -> Iterator[Chart]:
    """Yields the trend of agreement, where two weeks or more are known."""
    weeks = [week for week in figures.weeks if any(value is not None for value in week[1].values())]
    if len(weeks) > 1:
        yield agreement_charts.by_week(project.attributes_for(), weeks)


def _tasks_over_time(figures: Figures) -> Chart:
    first = min([*figures.imported, *figures.completed, *last_days(figures.as_of, days=2)])
    days = [day for day in last_days(figures.as_of, days=DAYS_DRAWN) if day >= first]
    tasks, complete = (_running_total(by_day, days) for by_day in (figures.imported, figures.completed))
    # Ratings that were imported may be older than their tasks.
    series = [Series(_("Tasks"), tasks), Series(_("Complete"), list(map(min, tasks, complete)))]
    return Chart(
        name="tasks",
        title=_("Tasks over time"),
        kind=ChartKind.LINE,
        places=[day_name(day) for day in days],
        series=series,
        place_label=_("Day"),
        value_label=_("Tasks"),
        note=_("A task counts as complete from the day of its last annotation."),
        minimum=0,
    )


def _running_total(by_day: Mapping[date, int], days: Sequence[date]) -> list[int]:
    earlier = sum(number for day, number in by_day.items() if day < days[0])
    return list(accumulate((by_day.get(day, 0) for day in days), initial=earlier))[1:]


def _annotations_by_person(figures: Figures, names: Callable[[int], str]) -> Chart:
    days = last_days(figures.as_of)
    totals: dict[int, int] = {}
    for by_person in figures.annotations.values():
        for person, number in by_person.items():
            totals[person] = totals.get(person, 0) + number
    people = sorted(totals, key=lambda person: (-totals[person], person))
    drawn, others = people[:PEOPLE_DRAWN], people[PEOPLE_DRAWN:]
    series = [
        Series(names(person), [figures.annotations.get(day, {}).get(person, 0) for day in days]) for person in drawn
    ]
    if others:
        rest = [sum(figures.annotations.get(day, {}).get(person, 0) for person in others) for day in days]
        series.append(Series(_("Others"), rest))
    return Chart(
        name="annotations",
        title=_("Annotations a day"),
        kind=ChartKind.STACKED,
        places=[day_name(day) for day in days],
        series=series,
        place_label=_("Day"),
        value_label=_("Annotations"),
    )


def _skips(figures: Figures) -> Chart:
    reasons = [(label, figures.skips.get(reason, 0)) for reason, label in SkipReason.choices]
    return Chart(
        name="skips",
        title=_("Reasons to skip"),
        kind=ChartKind.BAR,
        places=[str(label) for label, _number in reasons],
        series=[Series(_("Skips"), [number for _label, number in reasons])],
        place_label=_("Reason"),
    )


def _distribution(attributes: Sequence[Attribute], figures: Figures) -> Chart:
    most = max(len(one.levels) for one in attributes)
    series = []
    for score in range(most):
        counts = [figures.levels[one.key].counts for one in attributes]
        shares = [100 * count[score] / sum(count) if score < len(count) else None for count in counts]
        series.append(Series(_("Level %(level)s") % {"level": level(score)}, shares))
    return Chart(
        name="levels",
        title=_("Labels by level"),
        kind=ChartKind.STACKED,
        places=[one.shown_name for one in attributes],
        series=series,
        place_label=_("Attribute"),
        value_label=_("Per cent of the labels"),
        digits=1,
        minimum=0,
        maximum=100,
    )


def _means(attributes: Sequence[Attribute], figures: Figures) -> Chart:
    # Levels are counted from 1 where people read them, and from 0 where they are stored.
    means = [figures.levels[one.key].mean for one in attributes]
    series = [Series(_("This project"), [None if mean is None else mean + 1 for mean in means])]
    known = [published(one) for one in attributes]
    if any(known):
        series.append(Series("HelpSteer2", [one.mean + 1 if one else None for one in known]))
    return Chart(
        name="means",
        title=_("Mean label"),
        kind=ChartKind.POINTS,
        places=[one.shown_name for one in attributes],
        series=series,
        place_label=_("Attribute"),
        value_label=_("Mean level"),
        note=_("Levels are counted from 1."),
        digits=2,
        minimum=1,
        maximum=max(len(one.levels) for one in attributes),
    )


def _preferences(figures: Figures) -> Chart:
    names = {
        -3: _("1 much better"),
        -2: _("1 better"),
        -1: _("1 slightly better"),
        TIE: _("equally good"),
        1: _("2 slightly better"),
        2: _("2 better"),
        3: _("2 much better"),
        NEITHER_VALID: _("neither is valid"),
    }
    shown = [strength for strength in names if strength != TIE or TIE in figures.preferences]
    return Chart(
        name="preferences",
        title=_("Preferences"),
        kind=ChartKind.BAR,
        places=[names[strength] for strength in shown],
        series=[Series(_("Annotations"), [figures.preferences.get(strength, 0) for strength in shown])],
        place_label=_("Preference"),
        note=_("Response 1 is the one that was imported first, whatever order annotators saw."),
    )


# Tables ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kappas:
    """One attribute's kappa of the first three, all and kept annotations, beside HelpSteer2's at three stages."""

    attribute: Attribute
    own: Sequence[float | None]
    published: Published | None


def kappa_rows(project: Project, figures: Figures) -> list[Kappas]:
    """Returns the table of agreement, or nothing where no response has two ratings."""
    rows = [
        Kappas(one, [by_attribute.get(one.key) for by_attribute in figures.kappas.values()], published(one))
        for one in project.attributes_for()
    ]
    return rows if any(value is not None for row in rows for value in row.own) else []


@dataclass(frozen=True)
class Correlation:
    """Pearson's r of two attributes, None where one of them never varies, and its shade from 0 to 9."""

    value: float | None
    shade: int


def correlation_rows(project: Project, figures: Figures) -> list[tuple[Attribute, list[Correlation]]]:
    """Returns the table of correlations, or nothing where no two attributes vary."""
    attributes = project.attributes_for()
    rows = []
    for one in attributes:
        values = [figures.correlations.get(one.key, {}).get(other.key) for other in attributes]
        cells = [Correlation(value, min(int(abs(value or 0) * 10), 9)) for value in values]
        rows.append((one, cells))
    varied = sum(cell.value is not None for _one, cells in rows for cell in cells)
    return rows if varied > 1 and len(attributes) > 1 else []
