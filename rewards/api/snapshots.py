"""REST: snapshots are asked for, listed and erased."""

from typing import Any

from django.db.models import QuerySet
from django.urls import reverse
from drf_spectacular.utils import extend_schema
from rest_framework import generics, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotator.infrastructure.db.clock import database_now
from annotator.reading import access
from rewards.access import managed_snapshot, reviewed_snapshot_job
from rewards.api.serializers import SnapshotJobSerializer, SnapshotSerializer
from rewards.models import Snapshot
from rewards.registry import erasure
from rewards.snapshots import snapshot_jobs


class Snapshots(generics.ListCreateAPIView[Snapshot]):
    """A project's snapshots; a POST asks a worker for one and answers 202, or says at once that no worker listens."""

    serializer_class = SnapshotSerializer
    queryset = Snapshot.objects.none()
    filterset_fields = ("content_hash",)

    def get_queryset(self) -> QuerySet[Snapshot]:
        return access.reviewed_project(access.user_of(self.request), self.kwargs["slug"]).snapshots.select_related(
            "project"
        )

    @extend_schema(request=None, responses={202: SnapshotJobSerializer})
    def post(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        project = access.managed_project(access.user_of(request), self.kwargs["slug"])
        job = snapshot_jobs.request(project, by=access.user_of(request))
        location = {"Location": reverse("api:snapshot-job", args=[job.pk])}
        return Response(SnapshotJobSerializer(job).data, status=status.HTTP_202_ACCEPTED, headers=location)


class OneSnapshotJob(APIView):
    """A request for a snapshot: its state, and in the end the snapshot or the reason why there is none.

    Unchanged labels give the snapshot that is there.
    """

    @extend_schema(responses=SnapshotJobSerializer)
    def get(self, request: Request, pk: int) -> Response:
        return Response(SnapshotJobSerializer(reviewed_snapshot_job(access.user_of(request), pk)).data)


class EraseSnapshot(APIView):
    """Takes a snapshot that holds redacted or deleted texts off the disk, with all models that learnt from it."""

    @extend_schema(request=None, responses=SnapshotSerializer)
    def post(self, request: Request, pk: int) -> Response:
        snapshot = managed_snapshot(access.user_of(request), pk)
        return Response(SnapshotSerializer(erasure.erase(snapshot, now=database_now())).data)
