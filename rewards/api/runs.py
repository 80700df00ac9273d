"""REST: training runs are started, listed, cancelled, retried and rejected."""

from typing import Any

from django.db.models import QuerySet
from django.urls import reverse
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import generics, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotator.api.fields import validated
from annotator.infrastructure.db.clock import database_now
from annotator.reading import access
from rewards.access import managed_run, reviewed_run
from rewards.api.serializers import (
    RequestedRunSerializer,
    RunRequestSerializer,
    TrainingRunSerializer,
)
from rewards.models import TrainingRun
from rewards.runs import runs
from rewards.runs.new_labels import unchanged_since


class TrainingRuns(generics.ListCreateAPIView[TrainingRun]):
    """A project's runs; a POST starts one and answers 202, or says at once that no worker listens."""

    serializer_class = TrainingRunSerializer
    queryset = TrainingRun.objects.none()
    filterset_fields = ("state",)

    def get_queryset(self) -> QuerySet[TrainingRun]:
        project = access.reviewed_project(access.user_of(self.request), self.kwargs["slug"])
        runs_of_rewards = TrainingRun.objects.of_rewards().filter(project=project)
        return runs_of_rewards.select_related("project", "snapshot", "reward_model")

    @extend_schema(
        request=RunRequestSerializer,
        responses={202: RequestedRunSerializer},
        examples=[
            OpenApiExample("Three epochs", {"config": {"epochs": 3}, "reason": "more labels"}, request_only=True)
        ],
    )
    def post(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        project = access.managed_project(access.user_of(request), self.kwargs["slug"])
        data = validated(RunRequestSerializer(data=request.data))
        since = unchanged_since(project)
        run = runs.request(project, reason=data["reason"], by=access.user_of(request), config=data.get("config", {}))
        location = {"Location": reverse("api:training-run", args=[run.pk])}
        answer = TrainingRunSerializer(run).data | {"unchanged_since": since}
        return Response(answer, status=status.HTTP_202_ACCEPTED, headers=location)


class OneTrainingRun(APIView):
    """One run: state, progress, losses, metrics, verdict, error."""

    @extend_schema(responses=TrainingRunSerializer)
    def get(self, request: Request, pk: int) -> Response:
        run = reviewed_run(access.user_of(request), pk)
        return Response(TrainingRunSerializer(run).data)


class CancelTrainingRun(APIView):
    """Ends an active run."""

    @extend_schema(request=None, responses=TrainingRunSerializer)
    def post(self, request: Request, pk: int) -> Response:
        run = managed_run(access.user_of(request), pk)
        runs.cancel(run, now=database_now())
        run.refresh_from_db()
        return Response(TrainingRunSerializer(run).data)


class RetryTrainingRun(APIView):
    """A new run like one that failed or was cancelled: the same settings, and the same snapshot if it may be used."""

    @extend_schema(request=None, responses={202: TrainingRunSerializer})
    def post(self, request: Request, pk: int) -> Response:
        run = managed_run(access.user_of(request), pk)
        again = runs.retry(run, by=access.user_of(request))
        location = {"Location": reverse("api:training-run", args=[again.pk])}
        return Response(TrainingRunSerializer(again).data, status=status.HTTP_202_ACCEPTED, headers=location)


class RejectTrainingRun(APIView):
    """The no to a model that waits for a decision; the yes is `reward-models/ID/promote/`."""

    @extend_schema(request=None, responses=TrainingRunSerializer)
    def post(self, request: Request, pk: int) -> Response:
        run = managed_run(access.user_of(request), pk)
        runs.reject(run, now=database_now())
        run.refresh_from_db()
        return Response(TrainingRunSerializer(run).data)
