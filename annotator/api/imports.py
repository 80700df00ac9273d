"""REST calls on imports: take one back; have the light worker do one, follow, check and cancel it; kept mappings."""

from dataclasses import asdict
from typing import Any

from django.db.models import QuerySet
from django.http import HttpResponseBase, StreamingHttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import generics, serializers, status
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotator.api.fields import validated
from annotator.api.filters import ImportFilter, ImportJobFilter
from annotator.api.model_serializers import ModelSerializer
from annotator.api.transfer import (
    FITTING_PARAMETER,
    MAPPING_PARAMETER,
    NoteSerializer,
    StreamParser,
    WhateverIsAccepted,
    reader,
    sent_name,
    wanted_mapping,
)
from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.web import lane_shares, query_parameters
from annotator.infrastructure.web.query_parameters import flag
from annotator.models import Import, ImportJob, ImportJobError, ImportMapping, Project
from annotator.reading import access
from annotator.stages.importing import hub_files, jobs, kept_mappings, samples, take_back, withdrawal_preview
from annotator.stages.importing.kept_mappings import mapping_named
from annotator.stages.importing.mappings import fitting_only, guessed, read_mapping
from annotator.stages.importing.results import Notes

FORMATS = ("json", "csv")


class ImportSerializer(ModelSerializer[Import]):
    by = serializers.CharField(source="by.username", default="", read_only=True, help_text="empty: a command")

    class Meta:
        model = Import
        fields = [
            "id",
            "made_at",
            "by",
            "file_name",
            "file_hash",
            "file_bytes",
            "layouts",
            "created",
            "existing",
            "rejected",
            "taken_back_at",
            "removed",
            "all_gone_at",
        ]


class WithdrawalSerializer(serializers.Serializer[Any]):
    """What would be deleted. If `rated` is not 0, the import cannot be taken back."""

    tasks = serializers.IntegerField()
    rated = serializers.IntegerField(help_text="tasks that somebody has rated")
    labels = serializers.IntegerField(help_text="that came with files")
    imported_annotations = serializers.IntegerField(help_text="that came with files")
    leases = serializers.IntegerField(help_text="of people who are at one of the tasks")


class Imports(generics.ListAPIView[Import]):
    """Lists the files that were imported into the project, for its managers."""

    serializer_class = ImportSerializer
    queryset = Import.objects.none()
    filterset_class = ImportFilter

    def get_queryset(self) -> QuerySet[Import]:
        project = access.managed_project(access.user_of(self.request), self.kwargs["slug"])
        return Import.objects.filter(project=project).select_related("by")


class OneImport(APIView):
    """Takes an import back: its tasks are deleted, unless somebody has rated one of them.

    The status is 200 if all are deleted, and 202 if the light worker continues.
    """

    @extend_schema(
        parameters=[OpenApiParameter("dry_run", bool, description="1: say what would be removed, and change nothing")],
        responses={200: ImportSerializer, 202: ImportSerializer},
    )
    def delete(self, request: Request, slug: str, import_id: int) -> Response:
        user = access.user_of(request)
        project = access.managed_project(user, slug)
        row = get_object_or_404(Import.objects.filter(project=project), pk=import_id)
        if flag(request.query_params, "dry_run"):
            return Response(WithdrawalSerializer(asdict(withdrawal_preview(row))).data)
        done = take_back(row, by=user, now=database_now())
        return Response(
            ImportSerializer(done).data, status=status.HTTP_200_OK if done.all_gone_at else status.HTTP_202_ACCEPTED
        )


class ImportJobSerializer(ModelSerializer[ImportJob]):
    """`import_id` is the row under `imports/` once a task is made; `error` says why a job has failed."""

    by = serializers.CharField(source="requested_by.username", default="", read_only=True)
    import_id = serializers.IntegerField(allow_null=True, source="import_row_id", read_only=True)
    notes = serializers.SerializerMethodField()

    class Meta:
        model = ImportJob
        fields = [
            "id",
            "state",
            "dry_run",
            "hub",
            "file_name",
            "file_hash",
            "file_bytes",
            "bytes_read",
            "rows_done",
            "mapping",
            "layouts",
            "created",
            "existing",
            "rejected",
            "ratings_added",
            "ratings_left_out",
            "notes",
            "import_id",
            "error",
            "by",
            "created_at",
            "heartbeat_at",
            "finished_at",
        ]

    @extend_schema_field(NoteSerializer(many=True))
    def get_notes(self, job: ImportJob) -> list[dict[str, Any]]:
        return [vars(note) for note in Notes.from_json(job.notes).sentences()]


class StartSerializer(serializers.Serializer[Any]):
    dry_run = serializers.BooleanField(default=False)
    mapping = serializers.JSONField(
        default=None, allow_null=True, help_text="a mapping, or the name of one that the project keeps"
    )
    fitting_only = serializers.BooleanField(default=False, help_text="leave out ratings that do not fit")


class ErrorSerializer(ModelSerializer[ImportJobError]):
    class Meta:
        model = ImportJobError
        fields = ["line", "field", "error"]


class PreviewedResponseSerializer(serializers.Serializer[Any]):
    text = serializers.CharField()
    model = serializers.CharField()


class PreviewedTaskSerializer(serializers.Serializer[Any]):
    id = serializers.CharField(source="external_id")
    messages = serializers.ListField(child=serializers.DictField())
    responses = PreviewedResponseSerializer(many=True)
    priority = serializers.IntegerField()
    language = serializers.CharField()
    metadata = serializers.DictField()


class PreviewSerializer(serializers.Serializer[Any]):
    """What the first rows would become. `layout` is empty if none of them is a task."""

    columns = serializers.ListField(child=serializers.CharField())
    layout = serializers.CharField()
    tasks = PreviewedTaskSerializer(many=True)
    rejected = serializers.ListField(child=serializers.DictField())
    suggested_mapping = serializers.DictField(help_text="what the names of the columns suggest")
    note = serializers.CharField(help_text="why no row can be shown")


class MappingSerializer(ModelSerializer[ImportMapping]):
    """A mapping. Sent back with `changed_at`, it is refused if another one has been kept under the name since."""

    mapping = serializers.JSONField(source="columns")
    name = serializers.CharField(max_length=200)
    changed_at = serializers.DateTimeField(
        required=False, allow_null=True, help_text="of the mapping that it replaces; null: of none; absent: of any"
    )

    class Meta:
        model = ImportMapping
        fields = ["id", "name", "mapping", "changed_at"]


def _managed(request: Request, slug: str) -> Project:
    return access.managed_project(access.user_of(request), slug)


def _managed_job(request: Request, slug: str, job_id: int) -> ImportJob:
    """Returns a job of a project that the caller manages, in one step with the check."""
    rows = ImportJob.objects.arrived().select_related("project", "requested_by")
    return get_object_or_404(rows, project=_managed(request, slug), pk=job_id)


class ImportJobs(generics.ListAPIView[ImportJob]):
    """Lists the imports that the light worker does or did. A POST sends a file, as the body or as a form.

    It may also name a public data set of the Hugging Face Hub, which the worker fetches: one import for each file.
    """

    serializer_class = ImportJobSerializer
    queryset = ImportJob.objects.none()
    filterset_class = ImportJobFilter
    parser_classes = [MultiPartParser, StreamParser]

    def get_queryset(self) -> QuerySet[ImportJob]:
        project = _managed(self.request, self.kwargs["slug"])
        return ImportJob.objects.arrived().filter(project=project).select_related("requested_by")

    @extend_schema(
        request={"application/octet-stream": OpenApiTypes.BINARY},
        responses={202: ImportJobSerializer},
        parameters=[
            OpenApiParameter("dry_run", bool, description="1: check and count, write nothing"),
            OpenApiParameter("start", bool, description="0: only keep the file, for a preview; `start/` starts it"),
            OpenApiParameter("hub", description="OWNER/NAME, also with @REVISION, /FOLDER or /FILE; there is no body"),
            MAPPING_PARAMETER,
            FITTING_PARAMETER,
        ],
    )
    def post(self, request: Request, slug: str) -> Response:
        user, project, query = access.user_of(request), _managed(request, slug), request.query_params
        lane_shares.require_share(request._request, user.pk)
        mapping = wanted_mapping(request, project)
        sent: dict[str, Any] = {"by": user, "now": database_now()}
        keep_only = "start" in query and not query_parameters.flag(query, "start")
        how: dict[str, Any] = {"dry_run": query_parameters.flag(query, "dry_run"), "mapping": mapping}
        if name := query_parameters.text(query, "hub", longest=hub_files.LONGEST):
            job = jobs.request_from_hub(project, name, fetch_only=keep_only, **how, **sent)
        elif keep_only:
            job = jobs.upload(project, reader(request), file_name=sent_name(request), **sent)
        else:
            job = jobs.request(project, reader(request), file_name=sent_name(request), **how, **sent)
        location = {"Location": reverse("api:import-job", args=[slug, job.pk])}
        return Response(ImportJobSerializer(job).data, status=status.HTTP_202_ACCEPTED, headers=location)


class OneImportJob(APIView):
    """One import; deleting it cancels the work. Tasks that are in by then stay, and can be taken back."""

    @extend_schema(responses=ImportJobSerializer)
    def get(self, request: Request, slug: str, job_id: int) -> Response:
        return Response(ImportJobSerializer(_managed_job(request, slug, job_id)).data)

    @extend_schema(responses=ImportJobSerializer)
    def delete(self, request: Request, slug: str, job_id: int) -> Response:
        return Response(ImportJobSerializer(jobs.cancel(_managed_job(request, slug, job_id))).data)


class StartImport(APIView):
    """Starts the import of a file that was kept or checked."""

    @extend_schema(request=StartSerializer, responses={202: ImportJobSerializer})
    def post(self, request: Request, slug: str, job_id: int) -> Response:
        job = _managed_job(request, slug, job_id)
        data = validated(StartSerializer(data=request.data))
        sent = data["mapping"]
        is_named = sent is None or isinstance(sent, str)
        mapping = mapping_named(job.project, sent or "") if is_named else read_mapping(sent)
        mapping = fitting_only(mapping) if data["fitting_only"] else mapping
        started = jobs.start(job, dry_run=data["dry_run"], mapping=mapping)
        return Response(ImportJobSerializer(started).data, status=status.HTTP_202_ACCEPTED)


class ImportPreview(APIView):
    """The first rows of a file that was kept, as the tasks that they would become."""

    @extend_schema(responses=PreviewSerializer, parameters=[MAPPING_PARAMETER, FITTING_PARAMETER])
    def get(self, request: Request, slug: str, job_id: int) -> Response:
        job = _managed_job(request, slug, job_id)
        sample = jobs.sample_of(job)
        mapping = wanted_mapping(request, job.project)
        shown = samples.preview(job.project, sample, mapping, person=jobs.person_of_file(job))
        values = {
            "columns": sample.columns,
            "layout": shown.layout,
            "tasks": shown.tasks,
            "rejected": [{"line": row.line, "field": row.field, "error": row.error} for row in shown.refused],
            "suggested_mapping": guessed(sample.columns),
            "note": sample.note,
        }
        return Response(PreviewSerializer(values).data)


class ImportErrors(APIView):
    """The rows that were refused: the first 1,000 of them, as JSON or CSV."""

    content_negotiation_class = WhateverIsAccepted

    @extend_schema(
        responses={(200, "application/json"): ErrorSerializer(many=True), (200, "text/csv"): OpenApiTypes.BINARY},
        parameters=[OpenApiParameter("format", enum=list(FORMATS))],
    )
    def get(self, request: Request, slug: str, job_id: int) -> HttpResponseBase:
        job = _managed_job(request, slug, job_id)
        if query_parameters.choice(request.query_params, "format", FORMATS, default=FORMATS[0]) == "json":
            return Response(ErrorSerializer(job.errors.order_by("pk"), many=True).data)
        answer = StreamingHttpResponse(jobs.errors_csv(job), content_type="text/csv; charset=utf-8")
        answer["Content-Disposition"] = f'attachment; filename="{slug}-import-{job.pk}-errors.csv"'
        return answer


class ImportMappings(generics.ListAPIView[ImportMapping]):
    """The mappings of columns that the project keeps; a POST keeps one, in place of one of the same name."""

    serializer_class = MappingSerializer
    queryset = ImportMapping.objects.none()
    filterset_fields = ("name",)

    def get_queryset(self) -> QuerySet[ImportMapping]:
        project = _managed(self.request, self.kwargs["slug"])
        return ImportMapping.objects.filter(project=project).order_by("name")

    @extend_schema(request=MappingSerializer, responses={201: MappingSerializer})
    def post(self, request: Request, slug: str) -> Response:
        user, project = access.user_of(request), _managed(request, slug)
        data = validated(MappingSerializer(data=request.data))
        mapping = read_mapping(data["columns"])
        name, read = data["name"], data.get("changed_at")
        seen = {" ".join(name.split()): kept_mappings.moment(read)} if read else {}
        asks = "changed_at" in data
        row = kept_mappings.keep(project, name, mapping, by=user, seen=seen if asks else None)
        return Response(MappingSerializer(row).data, status=status.HTTP_201_CREATED)


class OneImportMapping(APIView):
    """One kept mapping."""

    @extend_schema(responses=MappingSerializer)
    def get(self, request: Request, slug: str, mapping_id: int) -> Response:
        row = get_object_or_404(ImportMapping, project=_managed(request, slug), pk=mapping_id)
        return Response(MappingSerializer(row).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, slug: str, mapping_id: int) -> Response:
        project = _managed(request, slug)
        row = get_object_or_404(ImportMapping.objects.select_related("project"), project=project, pk=mapping_id)
        kept_mappings.delete(row)
        return Response(status=status.HTTP_204_NO_CONTENT)
