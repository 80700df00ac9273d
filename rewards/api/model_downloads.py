"""REST: a model's files with their hashes, one by one or as one archive."""

from typing import Any

from django.http import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotator.api.fields import validated
from annotator.api.releases import RANGE
from annotator.api.transfer import WhateverIsAccepted
from annotator.infrastructure.web.tar_archives import TAR
from annotator.reading import access
from rewards.access import managed_model
from rewards.model_downloads.files import PARTS, files_of
from rewards.model_downloads.sending import sent_archive, sent_file


class ModelFileSerializer(serializers.Serializer[Any]):
    path = serializers.CharField()
    size = serializers.IntegerField()
    sha256 = serializers.CharField()


class PartSerializer(serializers.Serializer[Any]):
    part = serializers.ChoiceField(PARTS, default="", allow_blank=True, help_text="of both folders only this one")


class FilesOfModel(APIView):
    """The files of a model with their sizes and hashes: its card, `reward/` where it has one, and `model/`."""

    @extend_schema(responses=ModelFileSerializer(many=True))
    def get(self, request: Request, pk: int) -> Response:
        files = files_of(managed_model(access.user_of(request), pk))
        return Response(ModelFileSerializer(files, many=True).data)


class FileOfModel(APIView):
    """One file, by its path in the list, whole or in parts (`Range`, `If-Range`)."""

    content_negotiation_class = WhateverIsAccepted

    @extend_schema(
        responses={(200, "application/octet-stream"): OpenApiTypes.BINARY, (206, "application/octet-stream"): bytes},
        parameters=RANGE,
    )
    def get(self, request: Request, pk: int, path: str) -> HttpResponseBase:
        return sent_file(request._request, managed_model(access.user_of(request), pk), path)


class ArchiveOfModel(APIView):
    """All files, or those of one `part`, as one tar file, whole or in parts (`Range`, `If-Range`)."""

    content_negotiation_class = WhateverIsAccepted

    @extend_schema(
        responses={(200, TAR): OpenApiTypes.BINARY, (206, TAR): bytes},
        parameters=[OpenApiParameter("part", enum=PARTS, description="of both folders only this one"), *RANGE],
    )
    def get(self, request: Request, pk: int) -> HttpResponseBase:
        model = managed_model(access.user_of(request), pk)
        data = validated(PartSerializer(data=request.query_params))
        return sent_archive(request._request, model, part=data["part"])
