"""REST: snapshots are taken, listed and erased."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import generics, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotator import access
from annotator.db.clock import database_now
from rewards import erasure, snapshots
from rewards.access import managed_snapshot
from rewards.api.serializers import (
    SnapshotSerializer,
)
from rewards.models import Snapshot


class Snapshots(generics.ListCreateAPIView[Snapshot]):
    """A project's snapshots; a POST takes one, and unchanged labels give the one that is there."""

    serializer_class = SnapshotSerializer
    queryset = Snapshot.objects.none()

    def get_queryset(self) -> QuerySet[Snapshot]:
        return access.reviewed_project(access.user_of(self.request), self.kwargs["slug"]).snapshots.select_related(
            "project"
        )

    @extend_schema(request=None, responses={201: SnapshotSerializer})
    def create(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        project = access.managed_project(access.user_of(request), self.kwargs["slug"])
        taken = snapshots.take(project, now=database_now())
        return Response(SnapshotSerializer(taken).data, status=status.HTTP_201_CREATED)


class EraseSnapshot(APIView):
    """Takes a snapshot that holds redacted or deleted texts off the disk, with all models that learnt from it."""

    @extend_schema(request=None, responses=SnapshotSerializer)
    def post(self, request: Request, pk: int) -> Response:
        snapshot = managed_snapshot(access.user_of(request), pk)
        return Response(SnapshotSerializer(erasure.erase(snapshot, now=database_now())).data)
