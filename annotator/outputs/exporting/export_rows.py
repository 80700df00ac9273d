"""Stage 10 exports what people and the champion have said, in every layout and format, in constant memory.

A zip holds the set of files in which HelpSteer2 was published, and the tasks with their metadata, for which
HelpSteer2's rows have no place.
"""

import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import IO, Any, TypeVar, cast

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import F, Func, JSONField, OuterRef, QuerySet, Value
from django.utils.translation import gettext as _

from annotator.infrastructure import audit
from annotator.infrastructure.refusals import Refusal
from annotator.models import Project, Response, Task, User
from annotator.outputs.exporting import labels, preferences
from annotator.outputs.exporting.columns import Row, Type
from annotator.outputs.exporting.copied import Lines, copied, response_name
from annotator.outputs.exporting.file_formats import FORMATS, encoded, gzipped, json_lines
from annotator.outputs.exporting.filters import EVERYTHING, Filters
from annotator.outputs.exporting.layouts import LAYOUTS
from annotator.reading import access
from annotator.reading.blindness import tasks_held_by


def task_rows(project: Project, filters: Filters, _unseen: QuerySet[Any]) -> Lines:
    """Reads a row for each task as it can be imported, with its metadata and, for managers, that of its responses."""
    responses = Response.objects.filter(task=OuterRef("pk")).order_by("position")
    known = [Value("id"), response_name(""), Value("text"), F("text")]
    known += [Value("model"), F("model"), Value("metadata"), F("metadata")] if filters.for_manager else []
    listed = Func(*known, function="json_build_object", output_field=JSONField())
    tasks = filters.of_tasks(Task.objects.filter(project=project), project).order_by("pk")
    rows = tasks.values_list(
        "external_id", "conversation", ArraySubquery(responses.values_list(listed)), "language", "metadata"
    )
    names = ["id", "messages", "responses", "language", "metadata"]
    return copied(project, rows, names, task="pk", among=filters.among)


Rows = Callable[[Project, Filters, QuerySet[Any]], Iterable[Row]]
FILES: dict[str, Rows] = {
    "train.jsonl.gz": partial(labels.rows_of_a_side, held_out=False),
    "validation.jsonl.gz": partial(labels.rows_of_a_side, held_out=True),
    "disagreements/disagreements.jsonl.gz": labels.disagreement_rows,
    "preference/preference.jsonl.gz": preferences.preference_rows,
    "tasks/tasks.jsonl.gz": task_rows,
}
_LONG_AGO = (1980, 1, 1, 0, 0, 0)
"""The time of every file, so that the same rows give the same bytes."""


def helpsteer2_files(project: Project, filters: Filters, unseen: QuerySet[Any]) -> Iterator[bytes]:
    """Yields a zip with the labels of both sides, the disagreements, the preferences and the tasks."""
    sink = _Sink()
    with zipfile.ZipFile(cast("IO[bytes]", sink), "w", zipfile.ZIP_STORED) as archive:
        for name, rows in FILES.items():
            with archive.open(zipfile.ZipInfo(name, _LONG_AGO), "w", force_zip64=True) as file:
                for part in gzipped(json_lines(rows(project, filters, unseen))):
                    file.write(part)
                    yield sink.take()
    yield sink.take()


class _Sink:
    """Takes what an archive writes, until it is passed on. It cannot seek, so sizes follow behind each file."""

    def __init__(self) -> None:
        self._waiting: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._waiting.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        """What was written is taken by `take`."""

    def take(self) -> bytes:
        taken = b"".join(self._waiting)
        self._waiting.clear()
        return taken


T = TypeVar("T")


class UnknownExport(Refusal):
    """The layout or format does not exist; the message lists those that do."""

    status = 400
    code = "unknown_export"


class UnknownField(Refusal):
    """The layout has no such field; the message lists those that it has."""

    status = 400
    code = "unknown_field"


class NoLabels(Refusal):
    """`label_source` was given for a layout that does not export labels."""

    status = 400
    code = "no_labels"


class NoRubricVersion(Refusal):
    """The layout's rows hold no scores, or the rubric has no such version; the message lists what there is."""

    status = 400
    code = "no_rubric_version"


class ForManagersOnly(Refusal):
    """Only managers may have this layout."""

    status = 403
    code = "permission_denied"


def export(
    project: Project,
    *,
    layout: str,
    format: str,
    gzip: bool = False,
    filters: Filters = EVERYTHING,
    fields: Sequence[str] = (),
    by: User | None = None,
) -> Iterator[bytes]:
    """Streams the project's rows in the layout, encoded in the format, with all their fields or the chosen ones.

    Other people's single ratings of a task are left out while the person `by` is rating that task.

    Raises:
        UnknownExport: There is no such layout or format; raised before the first byte.
        UnknownField: The layout has no such field.
        NoLabels: The filters choose labels, and the layout has none.
        NoRubricVersion: The filters choose a version of the rubric, and the layout or the project has none such.
        ForManagers: The person `by` may not have this layout.
    """
    # This function is no generator: a refusal has to come, and the audit entry be written, before the answer begins.
    require_allowed(project, layout=layout, format=format, filters=filters, by=by)
    filters = for_reader(filters, project, by)
    columns = chosen_columns(project, layout, format, filters, fields)
    chosen = for_audit(layout, format, filters, fields)
    audit.record("labels.exported", f"layout {layout}", project=project, **chosen)
    return content(project, columns, layout=layout, format=format, gzip=gzip, filters=filters, fields=fields, by=by)


def content(
    project: Project,
    columns: Mapping[str, Type],
    *,
    layout: str,
    format: str,
    gzip: bool,
    filters: Filters,
    fields: Sequence[str],
    by: User | None,
    on_row: Callable[[], None] | None = None,
) -> Iterator[bytes]:
    """Yields the bytes of an export that `require_allowed` and `chosen_columns` have let through.

    `on_row` is called for each row; the rows of a zip are not counted.
    """
    if format == "zip":
        return helpsteer2_files(project, filters, tasks_held_by(by))
    rows = LAYOUTS[layout].rows(project, filters, tasks_held_by(by))
    if on_row:
        rows = Lines(_noted(rows.lines, on_row)) if isinstance(rows, Lines) else _noted(rows, on_row)
    return encoded(with_fields(rows, fields), columns, format=format, gzip=gzip)


def _noted(items: Iterable[T], on_item: Callable[[], None]) -> Iterator[T]:
    for item in items:
        on_item()
        yield item


def for_reader(filters: Filters, project: Project, by: User | None) -> Filters:
    """Returns the filters with what the person may read; a command has no person."""
    return replace(filters, for_manager=by is None or access.manages(by, project))


def for_audit(layout: str, format: str, filters: Filters, fields: Sequence[str]) -> dict[str, Any]:
    """Returns the details of an export that its audit entry names."""
    return {"layout": layout, "format": format, **filters.for_audit(), **({"fields": list(fields)} if fields else {})}


def chosen_columns(
    project: Project, layout: str, format: str, filters: Filters, fields: Sequence[str]
) -> Mapping[str, Type]:
    """Returns the layout's columns, or those of them that are chosen, in the order chosen. Raises UnknownField."""
    if format == "zip" and fields:
        raise UnknownField(_("The files of a zip have all their fields. Choose another format to have only some."))
    columns = LAYOUTS[layout].columns(project, filters)
    if unknown := [name for name in fields if name not in columns]:
        text = _("There is no field '%(field)s' in the layout '%(layout)s'. Fields: %(known)s.")
        raise UnknownField(text % {"field": unknown[0], "layout": layout, "known": ", ".join(columns)})
    return {name: columns[name] for name in fields} if fields else columns


def with_fields(rows: Iterable[Row], fields: Sequence[str]) -> Iterable[Row]:
    """Returns the rows with these fields; with all of theirs if there are none."""
    return ({name: row[name] for name in fields if name in row} for row in rows) if fields else rows


def layouts_for(project: Project, by: User) -> list[str]:
    """Returns the names of the layouts that the person may have and that have something of such a project."""
    manages, by_segments = access.manages(by, project), bool(project.attributes_ever("segment"))
    return [
        name
        for name, layout in LAYOUTS.items()
        if (manages or not layout.for_managers) and (by_segments or not layout.of_segments)
    ]


def require_allowed(project: Project, *, layout: str, format: str, filters: Filters, by: User | None) -> None:
    """Raises UnknownExport, NoLabels, NoRubricVersion or ForManagers, as `export` does."""
    if layout not in LAYOUTS:
        text = _("There is no layout '%(layout)s'. Layouts: %(known)s.")
        raise UnknownExport(text % {"layout": layout, "known": ", ".join(LAYOUTS)})
    if format not in FORMATS:
        text = _("There is no format '%(format)s'. Formats: %(known)s.")
        raise UnknownExport(text % {"format": format, "known": ", ".join(FORMATS)})
    if format == "zip" and layout != "helpsteer2":
        raise UnknownExport(_("A zip holds the files of the layout helpsteer2. Choose that layout or another format."))
    if filters.label_source and not LAYOUTS[layout].of_labels:
        text = _("The rows of the layout '%(layout)s' are no labels. label_source goes with: %(known)s.")
        known = ", ".join(name for name in LAYOUTS if LAYOUTS[name].of_labels)
        raise NoLabels(text % {"layout": layout, "known": known})
    if filters.rubric_versions:
        if not LAYOUTS[layout].of_scores:
            text = _("The rows of the layout '%(layout)s' hold no scores. rubric_version goes with: %(known)s.")
            known = ", ".join(name for name in LAYOUTS if LAYOUTS[name].of_scores)
            raise NoRubricVersion(text % {"layout": layout, "known": known})
        require_rubric_versions(project, filters.rubric_versions)
    if LAYOUTS[layout].for_managers and by is not None and not access.manages(by, project):
        text = _("Only managers of %(project)s may export the layout '%(layout)s'.")
        raise ForManagersOnly(text % {"project": project.name, "layout": layout})


def require_rubric_versions(project: Project, versions: Sequence[int]) -> None:
    """Raises NoRubricVersion where the project's rubric has never had one of the versions."""
    known = project.versions_of_attributes()
    if unknown := [version for version in versions if version not in known]:
        text = _("The rubric of %(project)s has no version %(version)s. Versions: %(known)s.")
        listed = ", ".join(map(str, sorted(known)))
        raise NoRubricVersion(text % {"project": project.name, "version": unknown[0], "known": listed})
