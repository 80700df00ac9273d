"""What the page of one person shows of their work: figures, flags with their evidence, and the latest submissions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from annotator.analysis.quality import own_work, person_work
from annotator.analysis.quality.findings import Finding, findings
from annotator.analysis.quality.person_work import Interval, PersonWithOthers, Volume
from annotator.infrastructure.web.charts import Chart, ChartKind, Series
from annotator.infrastructure.web.numbers import number
from annotator.models import Annotation, Attribute, Project, User
from annotator.pages.projects.agreement_charts import day_name
from annotator.stages.review.queue import submissions

LATEST, LATEST_AMONG = 10, 500
"""The submissions that are listed, and the latest assignments among which they are looked for."""


@dataclass(frozen=True)
class PersonSummary:
    """All that is known about one person's work in a project."""

    done: int
    this_week: int
    seconds: float | None
    shared: int
    kappa: float | None
    finding: Finding | None
    latest: Sequence[Annotation]
    volume: Sequence[Chart]
    agreement: Sequence[Chart]


def work_of(project: Project, user: User, *, done: int, reader: User) -> PersonSummary:
    """Reads somebody's work; the reader sees none of the tasks that they are rating themselves."""
    now = timezone.localtime()
    assignments = person_work.latest_assignments(user)
    volume = person_work.volume(project, assignments, now=now)
    agreed = person_work.with_others(project, assignments)
    attributes = project.attributes_for()
    kappas = [interval.value for interval in agreed.kappa.values() if interval.value is not None]
    found = findings(project, project.rater_qualities.select_related("annotator").filter(annotator=user))
    latest = submissions(project, reviewer=reader)
    # Chosen in two steps: for the newest few PostgreSQL would look through everybody's annotations.
    among = latest.filter(assignment__in=assignments[:LATEST_AMONG]).order_by().values_list("pk", flat=True)
    shown = latest.filter(pk__in=sorted(among, reverse=True)[:LATEST])
    return PersonSummary(
        done=done,
        this_week=volume.weeks[-1][1],
        seconds=own_work.median_seconds(project, assignments),
        shared=agreed.tasks,
        kappa=fmean(kappas) if kappas else None,
        finding=found[0] if found else None,
        latest=list(shown.select_related("assignment__task").defer("assignment__task__conversation")),
        volume=_volume_charts(volume),
        agreement=_agreement_charts(agreed, attributes) if kappas else [],
    )


def _volume_charts(volume: Volume) -> list[Chart]:
    if not any(count for _week, count in volume.weeks):
        return []
    weeks = [date_format(week, "SHORT_DATE_FORMAT") for week, _count in volume.weeks]
    tasks, partial = _("tasks"), _("Only the latest %(number)s tasks are counted, so the earliest weeks may lack some.")
    charts = [
        Chart(
            name="tasks-by-day",
            title=_("Tasks rated each day"),
            kind=ChartKind.BAR,
            places=[day_name(day) for day, _count in volume.days],
            series=[Series(tasks, [count for _day, count in volume.days])],
            place_label=_("day"),
        ),
        Chart(
            name="tasks-by-week",
            title=_("Tasks rated each week"),
            kind=ChartKind.BAR,
            places=weeks,
            series=[Series(tasks, [count for _week, count in volume.weeks])],
            place_label=_("week from"),
            note=partial % {"number": number(person_work.COUNTED, 0)} if volume.is_partial else "",
        ),
    ]
    if any(seconds is not None for seconds in volume.seconds):
        pace = Chart(
            name="pace",
            title=_("Pace"),
            kind=ChartKind.LINE,
            places=weeks,
            series=[Series(_("seconds for a task"), volume.seconds)],
            place_label=_("week from"),
            note=_("The median: half of the tasks of a week took longer. Only tasks rated on the page are timed."),
            minimum=0,
        )
        charts.append(pace)
    return charts


def _agreement_charts(agreed: PersonWithOthers, attributes: Sequence[Attribute]) -> list[Chart]:
    names = [attribute.shown_name for attribute in attributes]
    return [
        Chart(
            name="agreement-with-others",
            title=_("Agreement with the others"),
            kind=ChartKind.POINTS,
            places=names,
            series=[_series(_("kappa"), attributes, agreed.kappa)],
            place_label=_("attribute"),
            note=_("Weighted kappa with its interval (95 %): 1 is full agreement, 0 is chance."),
            digits=2,
            maximum=1,
        ),
        Chart(
            name="bias",
            title=_("Higher or lower than the others"),
            kind=ChartKind.POINTS,
            places=names,
            series=[_series(_("levels"), attributes, agreed.bias)],
            place_label=_("attribute"),
            note=_("The mean difference from the others' ratings of the same responses, with its interval (95 %)."),
            digits=2,
            marks={"0": 0},
        ),
    ]


def _series(name: str, attributes: Sequence[Attribute], values: Mapping[str, Interval]) -> Series:
    intervals = [values[attribute.key] for attribute in attributes]
    return Series(
        name,
        [interval.value for interval in intervals],
        low=[interval.low for interval in intervals],
        high=[interval.high for interval in intervals],
    )
