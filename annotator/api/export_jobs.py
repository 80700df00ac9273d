"""REST calls on exports that the light worker writes to a file: ask for one, follow it, download it, delete it."""

from functools import partial
from typing import Any

from django.db.models import QuerySet
from django.http import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotator.api.fields import validated
from annotator.api.model_serializers import ModelSerializer
from annotator.api.request_ids import RequestIdField, earlier_or_new
from annotator.api.scopes import ForReaders
from annotator.api.transfer import WhateverIsAccepted
from annotator.infrastructure.db.clock import database_now
from annotator.models import ExportJob
from annotator.outputs.exporting import export_jobs
from annotator.outputs.exporting.export_jobs import downloaded
from annotator.outputs.exporting.file_formats import FORMATS
from annotator.outputs.exporting.filters import PARAMETERS, fields_from, filters_from
from annotator.outputs.exporting.layouts import LAYOUTS
from annotator.reading import access


class ExportJobSerializer(ModelSerializer[ExportJob]):
    """`sha256` and `bytes_done` are those of the file once the state is *done*; `error` says why a job has failed."""

    filters = serializers.DictField(child=serializers.CharField(), read_only=True)

    class Meta:
        model = ExportJob
        fields = [
            "id",
            "state",
            "layout",
            "format",
            "gzip",
            "filters",
            "fields",
            "rows_expected",
            "rows_done",
            "bytes_done",
            "sha256",
            "error",
            "created_at",
            "heartbeat_at",
            "finished_at",
        ]


class WantedSerializer(serializers.Serializer[Any]):
    """What `export/` takes in its address."""

    layout = serializers.ChoiceField(list(LAYOUTS), default="helpsteer2")
    format = serializers.ChoiceField(list(FORMATS), default="jsonl")
    gzip = serializers.BooleanField(default=False)
    request_id = RequestIdField()

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        filters = {
            name: serializers.CharField(required=False, max_length=1_000, help_text=meaning)
            for name, meaning in PARAMETERS.items()
        }
        return {**super().get_fields(), **filters}


def _own_jobs(request: Request, slug: str) -> QuerySet[ExportJob]:
    user = access.user_of(request)
    return export_jobs.jobs_of(access.reviewed_project(user, slug), user).select_related(
        "project__rubric", "requested_by"
    )


class ExportJobs(ForReaders, generics.ListAPIView[ExportJob]):
    """Lists the caller's own files. A POST asks for one, which the light worker writes."""

    serializer_class = ExportJobSerializer
    queryset = ExportJob.objects.none()
    filterset_fields = ("state", "layout", "format")

    def get_queryset(self) -> QuerySet[ExportJob]:
        return _own_jobs(self.request, self.kwargs["slug"])

    @extend_schema(
        request=WantedSerializer,
        responses={202: ExportJobSerializer},
        examples=[
            OpenApiExample(
                "A year as a table", {"layout": "wide", "format": "csv", "since": "2026-01-01"}, request_only=True
            )
        ],
    )
    def post(self, request: Request, slug: str) -> Response:
        user = access.user_of(request)
        project = access.reviewed_project(user, slug)
        wanted = validated(WantedSerializer(data=request.data))
        texts = {name: wanted[name] for name in PARAMETERS if name in wanted}
        make = partial(
            export_jobs.request,
            project,
            **{name: wanted[name] for name in ("layout", "format", "gzip", "request_id")},
            filters=filters_from(texts),
            fields=fields_from(texts),
            by=user,
            now=database_now(),
        )
        job = earlier_or_new(export_jobs.jobs_of(project, user), wanted["request_id"], make)
        location = {"Location": reverse("api:export-job", args=[slug, job.pk])}
        return Response(ExportJobSerializer(job).data, status=status.HTTP_202_ACCEPTED, headers=location)


class OneExportJob(ForReaders, APIView):
    """One of the caller's files; deleting it cancels the work, or deletes the file."""

    @extend_schema(responses=ExportJobSerializer)
    def get(self, request: Request, slug: str, job_id: int) -> Response:
        return Response(ExportJobSerializer(get_object_or_404(_own_jobs(request, slug), pk=job_id)).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, slug: str, job_id: int) -> Response:
        export_jobs.delete(get_object_or_404(_own_jobs(request, slug), pk=job_id))
        return Response(status=status.HTTP_204_NO_CONTENT)


class ExportFile(APIView):
    """The file itself, whole or in parts: `Range` and `If-Range` continue a download that broke off."""

    content_negotiation_class = WhateverIsAccepted

    @extend_schema(
        responses={(200, "application/octet-stream"): OpenApiTypes.BINARY, (206, "application/octet-stream"): bytes},
        parameters=[OpenApiParameter("Range", location="header", description="such as bytes=1000-")],
    )
    def get(self, request: Request, slug: str, job_id: int) -> HttpResponseBase:
        return downloaded(request._request, get_object_or_404(_own_jobs(request, slug), pk=job_id))
