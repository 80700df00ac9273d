"""Which rows and fields an export takes."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db.models import Q, QuerySet

from annotator.models import Label, Project, Task
from annotator.projects import languages
from annotator.search.criteria import of_import
from annotator.web.query_parameters import BadParameter, Parameters, choice, number, text

STATES = (Task.State.OPEN, Task.State.COMPLETE)
"""The states of tasks that are exported at all."""


@dataclass(frozen=True)
class Filters:
    """What the exported rows have in common; what is empty or None does not matter.

    `since` and `until` are the moments between which a row was made, without `until` itself. `state`, `language` (a
    code) and `source` (the id of an import of the project) are those of the row's task, and `among` are ids of tasks.
    `label_source` is where labels come from; only layouts of labels know it.
    """

    since: datetime | None = None
    until: datetime | None = None
    state: str = ""
    language: str = ""
    source: int | None = None
    among: Sequence[int] | None = None
    label_source: str = ""

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

    def of_labels(self, labels: QuerySet[Label]) -> QuerySet[Label]:
        """Keeps the labels that were made in the time, and come from where they should."""
        in_time: QuerySet[Label] = self.of_time(labels, "made_at")
        return in_time.filter(source=self.label_source) if self.label_source else in_time

    def of_time(self, rows: QuerySet[Any], field: str) -> Any:
        """Keeps the rows that were made in the time."""
        after = rows.filter(**{f"{field}__gte": self.since}) if self.since else rows
        return after.filter(**{f"{field}__lt": self.until}) if self.until else after

    def for_audit(self) -> dict[str, Any]:
        """Returns the filters in use, with times as texts."""
        times = {"since": self.since and self.since.isoformat(), "until": self.until and self.until.isoformat()}
        of_rows = {"state": self.state, "language": self.language, "source": self.source}
        all_of_them = times | of_rows | {"label_source": self.label_source}
        return {name: value for name, value in all_of_them.items() if value}

    def as_parameters(self) -> dict[str, str]:
        """Returns the query parameters from which `filters_from` reads these filters."""
        return {name: str(value) for name, value in self.for_audit().items()}

    def ask_for_a_time(self) -> bool:
        return bool(self.since or self.until)


EVERYTHING = Filters()
PARAMETERS = {
    "since": "only rows made at or after this time, such as 2026-01-31T12:00:00Z",
    "until": "only rows made before this time",
    "state": f"only rows of tasks that are {' or '.join(STATES)}",
    "language": "only rows of tasks in this language, by its code or English name",
    "source": "only rows of tasks from the import with this id",
    "label_source": f"only labels that are {' or '.join(Label.Source.values)}; for layouts of labels",
    "fields": "only these fields of each row, such as prompt,response, in this order",
}
"""The names and meanings of what `filters_from` and `fields_from` read."""


def filters_from(parameters: Parameters) -> Filters:
    """Reads the filters from the query of an address or the options of a command. Raises BadParameter."""
    language = text(parameters, "language", longest=40)
    if language and not languages.code_of(language):
        raise BadParameter("language", "Write a language's code, such as de, or its English name.")
    return Filters(
        since=_moment(parameters, "since"),
        until=_moment(parameters, "until"),
        state=choice(parameters, "state", ["", *STATES], default=""),
        language=languages.code_of(language),
        source=number(parameters, "source"),
        label_source=choice(parameters, "label_source", ["", *Label.Source.values], default=""),
    )


def fields_from(parameters: Parameters) -> tuple[str, ...]:
    """Reads the fields that rows should have; none means all."""
    names = (name.strip() for name in text(parameters, "fields").split(","))
    return tuple(dict.fromkeys(name for name in names if name))


def _moment(parameters: Parameters, name: str) -> datetime | None:
    """Reads a time, in UTC where it names no offset."""
    written = text(parameters, name)
    if not written:
        return None
    try:
        moment = datetime.fromisoformat(written)
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise BadParameter(name, "Write a time like 2026-01-31T12:00:00Z.") from None
