"""Data > Export: a look at what a file will hold, its download, and files that the light worker writes beforehand."""

import json
from typing import Any

from django.contrib import messages
from django.core.serializers.json import DjangoJSONEncoder
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.db.statement_timeouts import streamed
from annotator.infrastructure.web import lane_shares
from annotator.infrastructure.web.acting import show_refusal
from annotator.models import ExportJob, Project, User
from annotator.outputs.exporting import export_jobs as jobs
from annotator.outputs.exporting.export_jobs import downloaded
from annotator.outputs.exporting.export_previews import ExportPreview, preview
from annotator.outputs.exporting.export_rows import NoLabels, NoRubricVersion, UnknownExport, UnknownField, export
from annotator.outputs.exporting.file_formats import content_type, file_name
from annotator.pages.data.data_form import ExportForm
from annotator.reading import access
from annotator.reading.access import user_of
from annotator.reading.search.criteria import TooBroad

LARGE = 100_000
"""Rows of which a file is better written by the worker: a download that takes minutes may break off."""
FILES_SHOWN = 20
LONGEST_CELL = 120


@require_GET
def export_data(request: HttpRequest, slug: str) -> HttpResponse:
    """Shows the first rows of the chosen export and how large it is. Downloading it is a step of its own."""
    user = user_of(request)
    project = access.reviewed_project(user, slug)
    form = ExportForm(project, request.GET, by=user)
    shown: ExportPreview | None = None
    if form.is_valid():
        try:
            shown = preview(project, **form.export(), by=user)
        except (TooBroad, NoLabels, NoRubricVersion, UnknownExport) as refusal:
            form.add_error(None, str(refusal))
        except UnknownField as refusal:
            form.add_error("only", str(refusal))
    columns = list(dict.fromkeys(name for row in shown.first for name in row)) if shown else []
    context = {
        **_files(project, user),
        "project": project,
        "manages": access.manages(user, project),
        "form": form,
        "preview": shown,
        "columns": columns,
        "rows": [[_shown(row.get(name)) for name in columns] for row in shown.first] if shown else [],
        "is_large": bool(shown and shown.rows > LARGE),
    }
    return render(request, "workspace/export_data.html", context, status=422 if form.errors else 200)


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, cls=DjangoJSONEncoder)
    return text if len(text) <= LONGEST_CELL else f"{text[:LONGEST_CELL]}…"


@require_GET
def export_file(request: HttpRequest, slug: str) -> HttpResponseBase:
    """Streams the chosen export."""
    user = user_of(request)
    project = access.reviewed_project(user, slug)
    form = ExportForm(project, request.GET, by=user)
    if not form.is_valid():
        messages.error(request, _("Nothing was downloaded. Choose from what the page offers."))
        return redirect("export-data", slug)
    chosen = form.export()
    try:
        lane_shares.require_share(request, user.pk)
        rows = export(project, **chosen, by=user)
    except (NoLabels, NoRubricVersion, UnknownExport, UnknownField, lane_shares.ShareUsedUp) as refusal:
        messages.error(request, " ".join((_("Nothing was downloaded."), str(refusal))))
        return redirect("export-data", slug)
    format, gzip = chosen["format"], chosen["gzip"]
    answer = StreamingHttpResponse(streamed(rows), content_type=content_type(format, gzip=gzip))
    name = file_name(project, chosen["layout"], format, gzip=gzip)
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    return answer


@require_POST
def request_export(request: HttpRequest, slug: str) -> HttpResponse:
    """Has the light worker write the chosen export to a file."""
    user = user_of(request)
    project = access.reviewed_project(user, slug)
    form = ExportForm(project, request.POST, by=user)
    if not form.is_valid():
        messages.error(request, _("No file was asked for. Choose from what the page offers."))
        return redirect("export-data", slug)
    with show_refusal(request):
        jobs.request(project, **form.export(), by=user, now=database_now())
    return redirect(f"{reverse('export-data', args=[slug])}?{urlencode(form.chosen())}#files")


@require_GET
def export_jobs(request: HttpRequest, slug: str) -> HttpResponse:
    """The reader's files alone, which the page reads again while one of them is being written."""
    user = user_of(request)
    project = access.reviewed_project(user, slug)
    return render(request, "workspace/_export_jobs.html", {"project": project, **_files(project, user)})


def _files(project: Project, user: User) -> dict[str, Any]:
    files = list(jobs.jobs_of(project, user)[:FILES_SHOWN])
    return {"files": files, "under_way": any(job.is_under_way() for job in files)}


@require_GET
def export_job_file(request: HttpRequest, slug: str, job_id: int) -> HttpResponseBase:
    """Sends one of the reader's files, or the part of it that a browser still lacks."""
    job = _own_job(request, slug, job_id)
    with show_refusal(request):
        return downloaded(request, job)
    return redirect("export-data", slug)


@require_POST
def delete_export(request: HttpRequest, slug: str, job_id: int) -> HttpResponse:
    """Cancels one of the reader's files, or deletes it."""
    jobs.delete(_own_job(request, slug, job_id))
    messages.success(request, _("The file was deleted."))
    return redirect(f"{reverse('export-data', args=[slug])}#files")


def _own_job(request: HttpRequest, slug: str, job_id: int) -> ExportJob:
    user = user_of(request)
    rows = jobs.jobs_of(access.reviewed_project(user, slug), user)
    return get_object_or_404(rows.select_related("project__rubric", "requested_by"), pk=job_id)
