"""Stage 10 exports what people and the champion have said, in every layout and format, in constant memory."""

from collections.abc import Iterator

from django.utils.translation import gettext as _

from annotator import access, audit
from annotator.exporting.filters import EVERYTHING, Filters
from annotator.exporting.formats import FORMATS, encoded
from annotator.exporting.layouts import LAYOUTS
from annotator.models import Project, User
from annotator.refusals import Refusal
from annotator.review.blindness import tasks_held_by


class UnknownExport(Refusal):
    """The layout or format does not exist; the message lists those that do."""

    status = 400
    code = "unknown_export"


class ForManagers(Refusal):
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
    by: User | None = None,
) -> Iterator[bytes]:
    """Streams the project's rows in the layout, encoded in the format.

    Other people's single ratings of a task are left out while the person `by` is rating that task.

    Raises:
        UnknownExport: There is no such layout or format; raised before the first byte.
        ForManagers: The person `by` may not have this layout.
    """
    # This function is no generator: a refusal has to come, and the audit entry be written, before the answer begins.
    require_allowed(project, layout=layout, format=format, by=by)
    chosen = {"layout": layout, "format": format, **filters.for_audit()}
    audit.record("labels.exported", f"layout {layout}", project=project, **chosen)
    rows = LAYOUTS[layout].rows(project, filters, tasks_held_by(by))
    return encoded(rows, LAYOUTS[layout].columns(project), format=format, gzip=gzip)


def layouts_for(project: Project, by: User) -> list[str]:
    """Returns the names of the layouts that the person may have."""
    manages = access.manages(by, project)
    return [name for name, layout in LAYOUTS.items() if manages or not layout.for_managers]


def require_allowed(project: Project, *, layout: str, format: str, by: User | None) -> None:
    """Raises UnknownExport unless there are such a layout and format, and ForManagers if `by` may not have it."""
    if layout not in LAYOUTS:
        text = _("There is no layout '%(layout)s'. Layouts: %(known)s.")
        raise UnknownExport(text % {"layout": layout, "known": ", ".join(LAYOUTS)})
    if format not in FORMATS:
        text = _("There is no format '%(format)s'. Formats: %(known)s.")
        raise UnknownExport(text % {"format": format, "known": ", ".join(FORMATS)})
    if LAYOUTS[layout].for_managers and by is not None and not access.manages(by, project):
        text = _("Only managers of %(project)s may export the layout '%(layout)s'.")
        raise ForManagers(text % {"project": project.name, "layout": layout})
