"""REST calls on a project's imports: list them, and take one back."""

from dataclasses import asdict
from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotator import access
from annotator.api.filters import ImportFilter
from annotator.api.model_serializers import ModelSerializer
from annotator.db.clock import database_now
from annotator.importing import take_back, withdrawal_preview
from annotator.models import Import
from annotator.web.query_parameters import flag


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
