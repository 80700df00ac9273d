"""Sends the file of an export job, whole or in parts."""

from django.http import HttpRequest, HttpResponseBase

from annotator import audit
from annotator.exporting.filters import filters_from
from annotator.exporting.formats import content_type, file_name
from annotator.exporting.jobs import file_of
from annotator.exporting.rows import for_audit
from annotator.models import ExportJob
from annotator.web.ranged_files import ranged_file


def downloaded(request: HttpRequest, job: ExportJob) -> HttpResponseBase:
    """Returns the job's file, or the part that the request asks for. Raises Refusal and ForManagers, as `file_of`."""
    path = file_of(job)
    chosen = for_audit(job.layout, job.format, filters_from(job.filters), job.fields)
    audit.record("labels.exported", f"layout {job.layout}, file {job.pk}", project=job.project, **chosen)
    kind, name = content_type(job.format, gzip=job.gzip), file_name(job.project, job.layout, job.format, gzip=job.gzip)
    return ranged_file(request, path, content_type=kind, name=name, sha256=job.sha256)
