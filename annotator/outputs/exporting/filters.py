"""Which rows and fields an export takes."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from django.db.models import Q, QuerySet
from django.utils.timezone import make_aware

from annotator.infrastructure.web.query_parameters import BadParameter, Parameters, choice, number, text
from annotator.models import Attribute, Label, Project, Task
from annotator.reading import languages
from annotator.reading.search.criteria import of_import

STATES = (Task.State.OPEN, Task.State.COMPLETE)
"""The states of tasks that are exported at all."""


@dataclass(frozen=True)
class Filters:
    """What the exported rows have in common; what is empty or None does not matter.

    `since` and `until` are the moments between which a row was made, without `until` itself. `state`, `language` (a
    code) and `source` (the id of an import of the project) are those of the row's task, and `among` are ids of tasks.
    `label_source` is where labels come from; only layouts of labels know it. `rubric_versions` are those that what
    people said was asked under; only layouts with scores know them. `for_manager` lets rows hold what may name the
    model that wrote a response, which reviewers are not to know; the reader decides it, and no parameter.
    """

    since: datetime | None = None
    until: datetime | None = None
    state: str = ""
    language: str = ""
    source: int | None = None
    among: Sequence[int] | None = None
    label_source: str = ""
    rubric_versions: tuple[int, ...] = ()
    for_manager: bool = False

    def restrict_tasks(self) -> bool:
        """Returns whether rows are left out because of their tasks."""
        return bool(self.state or self.language or self.source)

    def of_tasks(self, rows: Any, project: Project, path: str = "") -> Any:
        """Keeps the rows whose tasks are exported; `path` leads from a row to its task, such as "response__task__"."""
        wanted = Q(**{f"{path}state__in": [self.state] if self.state else STATES})
        if self.language:
            wanted &= Q(**{f"{path}language": self.language})
        if self.source:
            wanted &= of_import(project, self.source, path)
        if self.among is not None:
            wanted &= Q(**{f"{path}id__in": self.among})
        return rows.filter(wanted)

    def of_versions(self, rows: QuerySet[Any], path: str = "") -> Any:
        """Keeps the rows of the chosen versions; `path` leads from a row to what names its own."""
        chosen = {f"{path}rubric_version__in": self.rubric_versions}
        return rows.filter(**chosen) if self.rubric_versions else rows

    def keys(self, project: Project) -> list[str]:
        """Returns the attributes of responses that rows may have: those of the chosen versions, else of all."""
        return [one.key for one in project.attributes_ever(versions=self.rubric_versions)]

    def aspects(self, project: Project) -> list[Attribute]:
        """Returns the attributes of segments that rows may have: those of the chosen versions, else of all."""
        return project.attributes_ever(Attribute.Scope.SEGMENT, versions=self.rubric_versions)

    def of_labels(self, labels: QuerySet[Label]) -> QuerySet[Label]:
        """Keeps the labels that were made in the time, and come from where they should."""
        in_time: QuerySet[Label] = self.of_versions(self.of_time(labels, "made_at"))
        return in_time.filter(source=self.label_source) if self.label_source else in_time

    def of_time(self, rows: QuerySet[Any], field: str) -> Any:
        """Keeps the rows that were made in the time."""
        after = rows.filter(**{f"{field}__gte": self.since}) if self.since else rows
        return after.filter(**{f"{field}__lt": self.until}) if self.until else after

    def for_audit(self) -> dict[str, Any]:
        """Returns the filters in use, with times as texts."""
        times = {"since": self.since and self.since.isoformat(), "until": self.until and self.until.isoformat()}
        of_rows = {"state": self.state, "language": self.language, "source": self.source}
        versions = {"rubric_version": ",".join(map(str, self.rubric_versions))}
        all_of_them = times | of_rows | {"label_source": self.label_source} | versions
        return {name: value for name, value in all_of_them.items() if value}

    def as_parameters(self) -> dict[str, str]:
        """Returns the query parameters from which `filters_from` reads these filters."""
        return {name: str(value) for name, value in self.for_audit().items()}

    def ask_for_a_time(self) -> bool:
        return bool(self.since or self.until)


EVERYTHING = Filters()
PARAMETERS = {
    "since": "only rows made at or after this time, such as 2026-01-31T12:00:00Z, or since the beginning of this day",
    "until": "only rows made before this time, or until the end of this day",
    "state": f"only rows of tasks that are {' or '.join(STATES)}",
    "language": "only rows of tasks in this language, by its code or English name",
    "source": "only rows of tasks from the import with this id",
    "label_source": f"only labels that are {' or '.join(Label.Source.values)}; for layouts of labels",
    "rubric_version": "only what was rated under this version of the rubric, by its attributes; for layouts of scores",
    "fields": "only these fields of each row, such as prompt,response, in this order",
}
"""The names and meanings of what `filters_from` and `fields_from` read."""


def filters_from(parameters: Parameters) -> Filters:
    """Reads the filters from the query of an address or the options of a command. Raises BadParameter."""
    language = text(parameters, "language", longest=40)
    if language and not languages.code_of(language):
        raise BadParameter("language", "Write a language's code, such as de, or its English name.")
    version = number(parameters, "rubric_version")
    return Filters(
        since=_moment(parameters, "since", of_day=beginning_of),
        until=_moment(parameters, "until", of_day=end_of),
        state=choice(parameters, "state", ["", *STATES], default=""),
        language=languages.code_of(language),
        source=number(parameters, "source"),
        label_source=choice(parameters, "label_source", ["", *Label.Source.values], default=""),
        rubric_versions=() if version is None else (version,),
    )


def fields_from(parameters: Parameters) -> tuple[str, ...]:
    """Reads the fields that rows should have; none means all."""
    names = (name.strip() for name in text(parameters, "fields").split(","))
    return tuple(dict.fromkeys(name for name in names if name))


def beginning_of(day: date | None) -> datetime | None:
    """Returns the moment at which a day begins where the reader is."""
    return make_aware(datetime.combine(day, time.min)) if day else None


def end_of(day: date | None) -> datetime | None:
    """Returns the moment at which a day is over, so that the day is part of what ends there.

    It is None for the end of the calendar too.
    """
    return None if day is None or day == date.max else beginning_of(day + timedelta(days=1))


def _moment(parameters: Parameters, name: str, *, of_day: Callable[[date], datetime | None]) -> datetime | None:
    """Reads a day, or a time, which is in UTC where it names no offset."""
    written = text(parameters, name)
    if not written:
        return None
    with suppress(ValueError):
        return of_day(date.fromisoformat(written))
    try:
        moment = datetime.fromisoformat(written)
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise BadParameter(name, "Write a day like 2026-01-31, or a time like 2026-01-31T12:00:00Z.") from None
