"""The page from which a project's labels and annotations are downloaded, with a look at what the file will hold."""

import json
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.serializers.json import DjangoJSONEncoder
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from annotator import access
from annotator.access import user_of
from annotator.db.statement_timeouts import streamed
from annotator.exporting.columns import Row
from annotator.exporting.formats import content_type, suffix
from annotator.exporting.previews import Preview, preview
from annotator.exporting.rows import NoLabels, UnknownExport, UnknownField, export
from annotator.forms.data import ExportForm
from annotator.search.criteria import TooBroad

LONGEST_CELL = 120


@login_required
@never_cache
@require_GET
def export_data(request: HttpRequest, slug: str) -> HttpResponse:
    """Shows the first rows of the chosen export and how large it is. Downloading it is a step of its own."""
    user = user_of(request)
    project = access.reviewed_project(user, slug)
    form = ExportForm(project, request.GET, by=user)
    shown: Preview | None = None
    if form.is_valid():
        chosen = form.cleaned_data
        try:
            what = {name: chosen[name] for name in ("layout", "format", "gzip")}
            shown = preview(project, **what, filters=form.filters(), fields=chosen["only"], by=user)
        except (TooBroad, NoLabels, UnknownExport) as refusal:
            form.add_error(None, str(refusal))
        except UnknownField as refusal:
            form.add_error("only", str(refusal))
    columns = list(dict.fromkeys(name for row in shown.first for name in row)) if shown else []
    context = {
        "project": project,
        "manages": access.manages(user, project),
        "form": form,
        "preview": shown,
        "columns": columns,
        "rows": [_cells(row, columns) for row in shown.first] if shown else [],
    }
    return render(request, "workspace/export_data.html", context, status=422 if form.errors else 200)


def _cells(row: Row, columns: list[str]) -> list[str]:
    return [_shortened(row.get(name)) for name in columns]


def _shortened(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, cls=DjangoJSONEncoder)
    return text if len(text) <= LONGEST_CELL else f"{text[:LONGEST_CELL]}…"


@login_required
@never_cache
@require_GET
def export_file(request: HttpRequest, slug: str) -> HttpResponseBase:
    """Streams the chosen export."""
    user = user_of(request)
    project = access.reviewed_project(user, slug)
    form = ExportForm(project, request.GET, by=user)
    if not form.is_valid():
        messages.error(request, _("Nothing was downloaded. Choose from what the page offers."))
        return redirect("export-data", slug)
    layout, format, gzip, only = (form.cleaned_data[name] for name in ("layout", "format", "gzip", "only"))
    try:
        rows = export(project, layout=layout, format=format, gzip=gzip, filters=form.filters(), fields=only, by=user)
    except (NoLabels, UnknownExport, UnknownField) as refusal:
        messages.error(request, f"{_('Nothing was downloaded.')} {refusal}")
        return redirect("export-data", slug)
    answer = StreamingHttpResponse(streamed(rows), content_type=content_type(format, gzip=gzip))
    name = f"{project.slug}-{layout}.{suffix(format, gzip=gzip)}"
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    return answer
