"""Data > Import: managers upload files, see them as tasks, map their columns, check, import, cancel and take back."""

import json
from dataclasses import replace
from datetime import timedelta
from functools import partial
from itertools import islice
from string import ascii_uppercase
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.refusals import Refusal
from annotator.infrastructure.stale_edits import FIELD, sealed, unsealed
from annotator.infrastructure.storage.disk_space import MEGABYTE
from annotator.infrastructure.web.acting import show_refusal
from annotator.infrastructure.web.body_limits import most_bytes
from annotator.infrastructure.web.lane_shares import require_share
from annotator.infrastructure.web.middleware import HtmxRequest
from annotator.infrastructure.web.paging import page_of
from annotator.models import Import, ImportJob, ImportMapping, Project
from annotator.pages.data.import_mapping_form import SENT, MappingForm, filled_in
from annotator.reading import access
from annotator.reading.access import user_of
from annotator.reading.search.listing import MOST_COUNTED
from annotator.stages.importing import jobs, kept_mappings, samples, take_back, withdrawal_preview
from annotator.stages.importing.layouts.ratings import NO_RATER, names_nobody
from annotator.stages.importing.mapped_rows import is_there
from annotator.stages.importing.mappings import (
    BadMapping,
    ColumnMapping,
    fitting_only,
    guessed,
    mapping_of_text,
    read_mapping,
)
from annotator.stages.importing.results import Notes

PAGE = 20
JOBS_SHOWN = 10
ERRORS_SHOWN = 50
METADATA_SHOWN = 12
ROWS_SHOWN, CHARACTERS_SHOWN = 3, 120
"""Of the table of the file's columns."""
RATED_BY = "rated_by"
QUESTION = "question:"
"""What the fields of the questions are called before the question's name."""
SILENT_AFTER = timedelta(seconds=60)
LAYOUTS = {
    "tasks": gettext_lazy("task rows"),
    "conversations": gettext_lazy("conversations that end with the response"),
    "helpsteer2": gettext_lazy("HelpSteer2 rows: a prompt and a response in each"),
    "preference": gettext_lazy("HelpSteer2 preferences: a prompt and two responses in each row"),
    "helpsteer3": gettext_lazy("HelpSteer3 rows: a context and its responses in each"),
    "pairs": gettext_lazy("pairs: a chosen and a rejected response in each row"),
    "comparisons": gettext_lazy("comparisons: two responses in each row, and perhaps a vote"),
    "completions": gettext_lazy("lists of completions, as in UltraFeedback"),
    "trees": gettext_lazy("trees of messages, as in Open Assistant"),
    "stepwise": gettext_lazy("responses in steps, each with a verdict"),
    "segments": gettext_lazy("scores of segments of tasks that are there already"),
    "spans": gettext_lazy("responses with marked spans, as in FineGrainedRLHF"),
    "label_studio": gettext_lazy("Label Studio's tasks"),
    "argilla": gettext_lazy("Argilla's records"),
    "potato": gettext_lazy("Potato's annotations of tasks that are there already"),
    "annotations": gettext_lazy("annotations from another project, one of a response in each row"),
    "ratings": gettext_lazy("scores of tasks that are there already, one in each row"),
}


@require_http_methods(["GET", "POST"])
def import_data(request: HttpRequest, slug: str) -> HttpResponse:
    """Lists the imports of a project and takes the file of a new one."""
    user = user_of(request)
    project = access.managed_project(user, slug)
    problem = ""
    if request.method == "POST":
        file, named = request.FILES.get("file"), request.POST.get("hub", "").strip()
        sent: dict[str, Any] = {"by": user, "now": database_now()}
        try:
            require_share(request, user.pk)
            if file is not None:
                job = jobs.upload(project, file.read, file_name=file.name or "", **sent)
                return redirect("import-job", slug, job.pk)
            if named:
                job = jobs.request_from_hub(project, named, fetch_only=True, **sent)
                return redirect("import-job", slug, job.pk)
            problem = _("Choose a file first.")
        except Refusal as refused:
            problem = str(refused)
    page = {**_lists(request, project), "problem": problem, "most": most_bytes(request.path)}
    page["of_hub"] = "hub" in request.POST
    page["megabytes"] = page["most"] // MEGABYTE
    page["mappings"] = ImportMapping.objects.filter(project=project)
    return render(request, "workspace/import.html", page, status=422 if problem else 200)


@require_GET
def import_list(request: HttpRequest, slug: str) -> HttpResponse:
    """The lists alone, which the page reads again while an import is under way."""
    project = access.managed_project(user_of(request), slug)
    return render(request, "workspace/_imports.html", _lists(request, project))


def _lists(request: HttpRequest, project: Project) -> dict[str, Any]:
    rows = Import.objects.filter(project=project).exclude(created=0).select_related("by").order_by("-pk")
    page = page_of(request, rows.prefetch_related("jobs"), size=PAGE)
    # The newest, without those that the list of imports shows anyhow.
    arrived = ImportJob.objects.arrived().filter(project=project)
    imported = arrived.filter(state=ImportJob.State.DONE, import_row__isnull=False)
    waiting = arrived.exclude(pk__in=imported.values("pk")).order_by("-pk")
    shown = list(waiting[:JOBS_SHOWN]) if page["first"] else []
    return page | {"project": project, "jobs": shown, "under_way": any(job.is_under_way() for job in shown)}


@require_GET
def import_job(request: HtmxRequest, slug: str, job_id: int) -> HttpResponse:
    """Shows one upload: its first rows as tasks and the mapping, then how far it is, then what came of it."""
    template = "workspace/_import_job.html" if request.htmx else "workspace/import_job.html"
    return render(request, template, _job_page(request, _managed_job(request, slug, job_id)))


def _job_page(request: HttpRequest, job: ImportJob, *, written: ColumnMapping | None = None) -> dict[str, Any]:
    """Returns what the page of an upload shows; its first rows by the `written` mapping, where there is one."""
    page: dict[str, Any] = {"project": job.project, "job": job}
    if job.is_under_way():
        others = ImportJob.objects.exclude(pk=job.pk)
        at_work = others.filter(state=ImportJob.State.WORKING)
        before = at_work | others.filter(state=ImportJob.State.WAITING, pk__lt=job.pk)
        silent = job.heartbeat_at is not None and job.heartbeat_at < database_now() - SILENT_AFTER
        page["before"] = before.count() if job.state == ImportJob.State.WAITING else 0
        page["silent"] = silent and job.state == ImportJob.State.WORKING
    else:
        page["errors"] = job.errors.order_by("pk")[:ERRORS_SHOWN]
        page["kept_errors"] = job.errors.count() if job.rejected or job.ratings_left_out else 0
        page["notes"] = Notes.from_json(job.notes).sentences()
    if job.file_hash and (job.state == ImportJob.State.UPLOADED or job.was_checked()):
        page |= _preview(request, job, written=written)
    return page


def _managed_job(request: HttpRequest, slug: str, job_id: int) -> ImportJob:
    project = access.managed_project(user_of(request), slug)
    rows = ImportJob.objects.arrived().select_related("project__rubric", "requested_by", "import_row")
    return get_object_or_404(rows, project=project, pk=job_id)


def _preview(request: HttpRequest, job: ImportJob, *, written: ColumnMapping | None) -> dict[str, Any]:
    sample = jobs.sample_of(job)
    kept = list(ImportMapping.objects.filter(project=job.project))
    form, mapping = _mapping(request, job, sample, kept)
    if written:
        form, mapping = MappingForm(sample.columns, initial=filled_in(written.as_json())), written
    preview = partial(samples.preview, job.project, sample, person=jobs.person_of_file(job))
    try:
        shown = preview(fitting_only(mapping))
    except BadMapping as missing:  # a kept mapping for another file
        shown, mapping = preview(fitting_only(None)), None
        messages.error(request, str(missing))
    if mapping is None and not shown.layout and not form.is_bound and sample.columns:
        # Nothing is recognised: what the names of the columns suggest, if that makes tasks.
        suggested = MappingForm(sample.columns, filled_in(guessed(sample.columns)))
        if suggested.is_valid():
            form, mapping = suggested, suggested.mapping()
            shown = preview(fitting_only(mapping))
    by_columns = mapping is not None and bool(mapping.responses)
    return {
        **_of_answers(job, sample, shown, mapping),
        "values": [
            (
                column,
                [_shown((row.values or {}).get(column, ""))[:CHARACTERS_SHOWN] for row in sample.rows[:ROWS_SHOWN]],
            )
            for column in sample.columns
        ],
        "columns": sample.columns,
        "note": _(sample.note) if sample.note else "",
        "preview": shown,
        "tasks": [
            {
                "task": task,
                "responses": list(zip(ascii_uppercase, task.responses, strict=False)),
                # As a list: a template would look for a key called `items`.
                "metadata": [(key, _shown(value)) for key, value in islice(task.metadata.items(), METADATA_SHOWN)],
                "raters": task.people(),
            }
            for task in shown.tasks
        ],
        "layout": LAYOUTS.get(shown.layout, "") if not by_columns else "",
        "mapping": json.dumps(without)
        if mapping and (without := replace(mapping, fitting_only=False).as_json())
        else "",
        "is_mapped": by_columns,
        "judgements": mapping.judgements() if mapping else [],
        "form": form,
        "sent": SENT,
        "usable": bool(shown.tasks) or not sample.columns,
        "keep_as": request.POST.get("name") or request.GET.get("kept", ""),
        "seen": sealed(kept_mappings.as_seen(kept)),
        "kept": [
            (row, all(is_there(name, sample.columns) for name in read_mapping(row.columns).columns())) for row in kept
        ],
    }


def _of_answers(
    job: ImportJob, sample: samples.Sample, shown: samples.SamplePreview, mapping: ColumnMapping | None
) -> dict[str, Any]:
    """Returns what the page says of ratings in the file: what does not fit, questions that nothing reads, who rated."""
    attributes = job.project.attributes_for()
    chosen, rated_by = (mapping.questions, mapping.rated_by) if mapping else ({}, "")
    is_nobodys = names_nobody(shown.layout, sample.columns) and not jobs.person_of_file(job)
    known = {attribute.key for attribute in attributes}
    unread = shown.unread_questions()
    questions = dict.fromkeys([*chosen, *(name for name in unread if name not in known)])
    return {
        "refused": [row for row in shown.refused if not row.of_rating],
        "left_out": [row for row in shown.refused if row.of_rating],
        "fitting_only": bool(mapping and mapping.fitting_only) or bool((job.mapping or {}).get("fitting_only")),
        "rated_by": rated_by,
        "asks_who_rated": bool(rated_by) or is_nobodys or any(row.field == NO_RATER for row in shown.refused),
        "attributes": attributes,
        "questions": [(name, chosen.get(name, ""), unread.get(name, [])) for name in questions],
        "question": QUESTION,
    }


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _mapping(
    request: HttpRequest, job: ImportJob, sample: samples.Sample, kept: list[ImportMapping]
) -> tuple[MappingForm, ColumnMapping | None]:
    """Returns the form and the mapping in force: the one filled in, the one chosen by name, or that of the check."""
    if SENT in request.GET:
        form = MappingForm(sample.columns, request.GET)
        return form, form.mapping() if form.is_valid() else None
    asked = {key.removeprefix(QUESTION): to for key, to in request.GET.items() if key.startswith(QUESTION)}
    chosen = next((row.columns for row in kept if row.name == request.GET.get("kept")), None)
    if asked or RATED_BY in request.GET:
        said = {"fitting_only": "fitting_only" in request.GET, RATED_BY: request.GET.get(RATED_BY, "")}
        chosen = {"questions": asked, **said}
    if chosen is None and "own" not in request.GET:
        chosen = job.mapping
    by_columns = chosen if chosen and "responses" in chosen else None
    initial = filled_in(by_columns or guessed(sample.columns))
    return MappingForm(sample.columns, initial=initial), read_mapping(chosen) if chosen else None


@require_POST
def start_import(request: HttpRequest, slug: str, job_id: int) -> HttpResponse:
    """Starts the import of an uploaded file, or only checks it."""
    job = _managed_job(request, slug, job_id)
    text = request.POST.get("mapping", "")
    with show_refusal(request):
        mapping = mapping_of_text(text) if text else None
        if "fitting_only" in request.POST:
            mapping = fitting_only(mapping)
        jobs.start(job, dry_run=request.POST.get("action") != "import", mapping=mapping)
    return redirect("import-job", slug, job_id)


@require_POST
def cancel_import(request: HttpRequest, slug: str, job_id: int) -> HttpResponse:
    """Cancels an import, or discards an uploaded file."""
    job = _managed_job(request, slug, job_id)
    with show_refusal(request):
        jobs.cancel(job)
        if job.is_under_way():
            return redirect("import-job", slug, job_id)
        messages.success(request, _("%(name)s was discarded.") % {"name": job.file_name})
        return redirect("import-data", slug)
    return redirect("import-job", slug, job_id)


@require_GET
def import_errors(request: HttpRequest, slug: str, job_id: int) -> HttpResponseBase:
    """Downloads the refused rows as CSV."""
    job = _managed_job(request, slug, job_id)
    answer = StreamingHttpResponse(jobs.errors_csv(job), content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="{slug}-import-{job.pk}-errors.csv"'
    return answer


@require_POST
def keep_mapping(request: HttpRequest, slug: str, job_id: int) -> HttpResponse:
    """Keeps the mapping of a job's page with the project."""
    job = _managed_job(request, slug, job_id)
    try:
        mapping = mapping_of_text(request.POST.get("mapping", ""))
        seen = unsealed(request.POST[FIELD]) if FIELD in request.POST else None
        row = kept_mappings.keep(job.project, request.POST.get("name", ""), mapping, by=user_of(request), seen=seen)
    except kept_mappings.NewerMapping as stale:
        page = _job_page(request, job, written=mapping) | {"newer": str(stale)}
        return render(request, "workspace/import_job.html", page, status=stale.status)
    except Refusal as refused:
        messages.error(request, str(refused))
        return redirect("import-job", slug, job_id)
    messages.success(request, _("The mapping %(name)s is kept with the project.") % {"name": row.name})
    return redirect(f"{reverse('import-job', args=[slug, job_id])}?{urlencode({'kept': row.name})}")


@require_POST
def delete_mapping(request: HttpRequest, slug: str, mapping_id: int) -> HttpResponse:
    """Deletes a kept mapping."""
    project = access.managed_project(user_of(request), slug)
    row = get_object_or_404(ImportMapping.objects.select_related("project"), project=project, pk=mapping_id)
    kept_mappings.delete(row)
    messages.success(request, _("The mapping %(name)s is deleted.") % {"name": row.name})
    return redirect("import-data", slug)


@require_http_methods(["GET", "POST"])
def take_back_import(request: HttpRequest, slug: str, import_id: int) -> HttpResponse:
    """Says what taking an import back would delete, and does it on a POST."""
    user = user_of(request)
    project = access.managed_project(user, slug)
    row = get_object_or_404(Import.objects.filter(project=project).select_related("by"), pk=import_id)
    if request.method == "GET":
        page = {
            "project": project,
            "row": row,
            "preview": withdrawal_preview(row, most=MOST_COUNTED),
            "most": MOST_COUNTED,
        }
        return render(request, "workspace/take_back.html", page)
    with show_refusal(request):
        done = take_back(row, by=user, now=database_now())
        if done.all_gone_at:
            text = ngettext("%(count)s task was deleted.", "%(count)s tasks were deleted.", done.removed)
            messages.success(request, text % {"count": done.removed})
        else:
            messages.success(request, _("The tasks are being deleted in the background."))
        return redirect("import-data", slug)
    return redirect("take-back", slug, import_id)
