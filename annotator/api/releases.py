"""REST calls on releases: make one, follow it, download it file by file or as an archive, delete it."""

from typing import Any

from django.db.models import QuerySet
from django.http import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotator.api.fields import WholeNumberField, validated
from annotator.api.model_serializers import ModelSerializer
from annotator.api.request_ids import RequestIdField, earlier_or_new
from annotator.api.transfer import WhateverIsAccepted
from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.web.tar_archives import TAR
from annotator.models import Release
from annotator.outputs.releases import release_jobs
from annotator.outputs.releases.particulars import LICENSES, LONGEST_TEXT, LONGEST_TITLE, UNKNOWN, Particulars
from annotator.outputs.releases.release_jobs import sent_archive, sent_file
from annotator.reading import access

RANGE = [OpenApiParameter("Range", location="header", description="such as bytes=1000-")]


class ReleaseFileSerializer(serializers.Serializer[Any]):
    path = serializers.CharField()
    size = serializers.IntegerField()
    sha256 = serializers.CharField()


class ReleaseSerializer(ModelSerializer[Release]):
    """`content_hash` covers the rows; `archive_size` and `archive_sha256` are those of the tar file.

    `error` says why a release has failed. One that is *withdrawn* held a text that was erased, and has no files any
    more.
    """

    counts = serializers.DictField(read_only=True)

    class Meta:
        model = Release
        fields = [
            "number",
            "state",
            "title",
            "license",
            "license_text",
            "intended_use",
            "limits",
            "notes",
            "leave_out_failing",
            "rubric_version",
            "rows_expected",
            "rows_done",
            "bytes_done",
            "content_hash",
            "counts",
            "archive_size",
            "archive_sha256",
            "error",
            "created_at",
            "heartbeat_at",
            "finished_at",
        ]


class ParticularsSerializer(serializers.Serializer[Any]):
    """What the card says in the manager's words; where a text is empty, it has a plain sentence of its own."""

    title = serializers.CharField(max_length=LONGEST_TITLE, default="", allow_blank=True)
    license = serializers.ChoiceField(LICENSES, default=UNKNOWN)
    license_text = serializers.CharField(max_length=LONGEST_TEXT, default="", allow_blank=True)
    intended_use = serializers.CharField(max_length=LONGEST_TEXT, default="", allow_blank=True)
    limits = serializers.CharField(max_length=LONGEST_TEXT, default="", allow_blank=True)
    notes = serializers.CharField(max_length=LONGEST_TEXT, default="", allow_blank=True)
    leave_out_failing = serializers.BooleanField(
        default=False, help_text="leave out tasks that fail a check, instead of refusing the release"
    )
    rubric_version = WholeNumberField(
        default=None, allow_null=True, help_text="only labels and ratings made under it; null: all"
    )
    request_id = RequestIdField()


def _releases(request: Request, slug: str) -> QuerySet[Release]:
    return release_jobs.releases_of(access.managed_project(access.user_of(request), slug))


class Releases(generics.ListAPIView[Release]):
    """Lists the project's releases. A POST asks for one, which the light worker makes."""

    serializer_class = ReleaseSerializer
    queryset = Release.objects.none()
    filterset_fields = ("state",)

    def get_queryset(self) -> QuerySet[Release]:
        return _releases(self.request, self.kwargs["slug"])

    @extend_schema(request=ParticularsSerializer, responses={202: ReleaseSerializer})
    def post(self, request: Request, slug: str) -> Response:
        user = access.user_of(request)
        project = access.managed_project(user, slug)
        data = validated(ParticularsSerializer(data=request.data))
        request_id = data.pop("request_id")
        particulars = Particulars(**data)
        release = earlier_or_new(
            release_jobs.releases_of(project),
            request_id,
            lambda: release_jobs.request(project, particulars, by=user, now=database_now(), request_id=request_id),
        )
        location = {"Location": reverse("api:release", args=[slug, release.number])}
        return Response(ReleaseSerializer(release).data, status=status.HTTP_202_ACCEPTED, headers=location)


class OneRelease(APIView):
    """One release by its number; deleting it cancels the work, or deletes the files. The number is not used again."""

    @extend_schema(responses=ReleaseSerializer)
    def get(self, request: Request, slug: str, number: int) -> Response:
        return Response(ReleaseSerializer(get_object_or_404(_releases(request, slug), number=number)).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, slug: str, number: int) -> Response:
        release_jobs.delete(get_object_or_404(_releases(request, slug), number=number))
        return Response(status=status.HTTP_204_NO_CONTENT)


class ReleaseFiles(APIView):
    """The files of a release with their sizes and hashes; none while it is not done."""

    @extend_schema(responses=ReleaseFileSerializer(many=True))
    def get(self, request: Request, slug: str, number: int) -> Response:
        release = get_object_or_404(_releases(request, slug), number=number)
        files = release.files if release.state == Release.State.DONE else []
        return Response(ReleaseFileSerializer(files, many=True).data)


class ReleaseFile(APIView):
    """One file, by its path in the release, whole or in parts (`Range`, `If-Range`)."""

    content_negotiation_class = WhateverIsAccepted

    @extend_schema(
        responses={(200, "application/octet-stream"): OpenApiTypes.BINARY, (206, "application/octet-stream"): bytes},
        parameters=RANGE,
    )
    def get(self, request: Request, slug: str, number: int, path: str) -> HttpResponseBase:
        release = get_object_or_404(_releases(request, slug), number=number)
        return sent_file(request._request, release, path, reader=access.user_of(request))


class ReleaseArchive(APIView):
    """All files as one tar file, whose bytes never change, whole or in parts (`Range`, `If-Range`)."""

    content_negotiation_class = WhateverIsAccepted

    @extend_schema(responses={(200, TAR): OpenApiTypes.BINARY, (206, TAR): bytes}, parameters=RANGE)
    def get(self, request: Request, slug: str, number: int) -> HttpResponseBase:
        release = get_object_or_404(_releases(request, slug), number=number)
        return sent_archive(request._request, release, reader=access.user_of(request))
