"""Snapshots, training runs, reward models and scores over REST."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import BoundedSemaphore
from typing import Any

from django.conf import settings
from django.db.models import Count, IntegerField, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import Http404
from django.shortcuts import get_object_or_404
from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotator import access
from annotator.api.scopes import ForManagers, ForScoring
from annotator.db.clock import database_now
from annotator.models import Project, User
from rewards import champions, erasure, registry, runs, scoring, snapshots
from rewards.api.serializers import (
    PromotedSerializer,
    PromotionRequestSerializer,
    RewardModelSerializer,
    RunRequestSerializer,
    ScoredSerializer,
    ScoreRequestSerializer,
    ScoringJobSerializer,
    SnapshotSerializer,
    TrainingRunSerializer,
    VerificationSerializer,
)
from rewards.models import RewardModel, Score, ScoringJob, Snapshot, TrainingRun

SCORE_WAIT_SECONDS = 5.0
_may_wait = BoundedSemaphore(max(1, settings.WEB_THREADS // 2))
"""Of a web process's threads so many may wait for the score worker; the other requests get their job at once."""


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
        seen = Project.objects.visible_to(access.user_of(request))
        snapshot = get_object_or_404(Snapshot.objects.filter(project__in=seen).select_related("project"), pk=pk)
        access.managed_project(access.user_of(request), snapshot.project.slug)
        return Response(SnapshotSerializer(erasure.erase(snapshot, now=database_now())).data)


class TrainingRuns(generics.ListCreateAPIView[TrainingRun]):
    """A project's runs; a POST starts one and answers 202, or says at once that no worker listens."""

    serializer_class = TrainingRunSerializer
    queryset = TrainingRun.objects.none()

    def get_queryset(self) -> QuerySet[TrainingRun]:
        project = access.reviewed_project(access.user_of(self.request), self.kwargs["slug"])
        return project.training_runs.select_related("project", "snapshot", "reward_model")

    @extend_schema(request=RunRequestSerializer, responses={202: TrainingRunSerializer})
    def create(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        project = access.managed_project(access.user_of(request), self.kwargs["slug"])
        sent = RunRequestSerializer(data=request.data)
        sent.is_valid(raise_exception=True)
        wish = sent.validated_data
        run = runs.request(project, reason=wish["reason"], by=access.user_of(request), config=wish.get("config", {}))
        where = {"Location": reverse("api:training-run", args=[run.pk])}
        return Response(TrainingRunSerializer(run).data, status=status.HTTP_202_ACCEPTED, headers=where)


def _run(user: User, pk: int) -> TrainingRun:
    return get_object_or_404(
        TrainingRun.objects.filter(project__in=Project.objects.visible_to(user)).select_related(
            "project", "snapshot", "reward_model"
        ),
        pk=pk,
    )


class OneTrainingRun(APIView):
    """One run: state, progress, losses, metrics, verdict, error."""

    @extend_schema(responses=TrainingRunSerializer)
    def get(self, request: Request, pk: int) -> Response:
        run = _run(access.user_of(request), pk)
        access.reviewed_project(access.user_of(request), run.project.slug)
        return Response(TrainingRunSerializer(run).data)


class CancelTrainingRun(APIView):
    """Ends an active run."""

    @extend_schema(request=None, responses=TrainingRunSerializer)
    def post(self, request: Request, pk: int) -> Response:
        run = _run(access.user_of(request), pk)
        access.managed_project(access.user_of(request), run.project.slug)
        runs.cancel(run, now=database_now())
        run.refresh_from_db()
        return Response(TrainingRunSerializer(run).data)


class RetryTrainingRun(APIView):
    """A new run like one that failed or was cancelled: the same settings, and the same snapshot if it may be used."""

    @extend_schema(request=None, responses={202: TrainingRunSerializer})
    def post(self, request: Request, pk: int) -> Response:
        run = _run(access.user_of(request), pk)
        access.managed_project(access.user_of(request), run.project.slug)
        again = runs.retry(run, by=access.user_of(request))
        where = {"Location": reverse("api:training-run", args=[again.pk])}
        return Response(TrainingRunSerializer(again).data, status=status.HTTP_202_ACCEPTED, headers=where)


class RejectTrainingRun(APIView):
    """The no to a model that waits for a decision; the yes is `reward-models/ID/promote/`."""

    @extend_schema(request=None, responses=TrainingRunSerializer)
    def post(self, request: Request, pk: int) -> Response:
        run = _run(access.user_of(request), pk)
        access.managed_project(access.user_of(request), run.project.slug)
        runs.reject(run, now=database_now())
        run.refresh_from_db()
        return Response(TrainingRunSerializer(run).data)


class RewardModels(generics.ListAPIView[RewardModel]):
    """The models of the projects that the caller manages or reviews."""

    serializer_class = RewardModelSerializer
    queryset = RewardModel.objects.none()
    filterset_fields = {"project__slug": ["exact"], "is_champion": ["exact"]}

    def get_queryset(self) -> QuerySet[RewardModel]:
        seen = access.reviewed_projects(access.user_of(self.request))
        return with_scored(RewardModel.objects.filter(project__in=seen))


def with_scored(models: QuerySet[RewardModel]) -> QuerySet[RewardModel]:
    """What their serializer shows, in as many queries for many as for one."""
    counted = (
        Score.objects.filter(reward_model=OuterRef("pk")).order_by().values("reward_model").annotate(n=Count("pk"))
    )
    scored = Coalesce(Subquery(counted.values("n"), output_field=IntegerField()), 0)
    return (
        models.select_related("project", "run__snapshot", "parent")
        .prefetch_related("evaluations")
        .annotate(scored=scored)
    )


class Promote(APIView):
    """Makes a model the champion, be it newer or older than the one in use, and has it score every response.

    One that the gate turned down and that was never in use needs `confirm`: without it the answer is 409 with the
    gate's verdict.
    """

    @extend_schema(
        request=PromotionRequestSerializer,
        responses=PromotedSerializer,
        parameters=[OpenApiParameter("confirm", OpenApiTypes.BOOL, description="the same as in the body")],
    )
    def post(self, request: Request, pk: int) -> Response:
        models = RewardModel.objects.filter(project__in=Project.objects.visible_to(access.user_of(request)))
        model = get_object_or_404(with_scored(models), pk=pk)
        access.managed_project(access.user_of(request), model.project.slug)
        asked = {name: value for name, value in request.query_params.items() if name == "confirm"}
        wish = PromotionRequestSerializer(data=request.data or asked)
        wish.is_valid(raise_exception=True)
        promoted = champions.promote(model, confirmed=wish.validated_data["confirm"], now=database_now())
        return Response({**RewardModelSerializer(model).data, "scores_wait": promoted.scores_wait})


class Verification(ForManagers, APIView):
    """Hashes the model's files and its snapshot's anew, which takes a second or more for each gigabyte."""

    @extend_schema(responses=VerificationSerializer)
    def get(self, request: Request, pk: int) -> Response:
        user = access.user_of(request)
        models = RewardModel.objects.filter(project__in=Project.objects.visible_to(user))
        model = get_object_or_404(models.select_related("project", "run__snapshot"), pk=pk)
        access.managed_project(user, model.project.slug)
        problems = registry.verify(model)
        return Response({"intact": not problems, "problems": problems})


class ScoreItems(ForScoring, APIView):
    """Scores items by a warm worker: 200 with the results, or 202 with a job where it takes longer."""

    @extend_schema(request=ScoreRequestSerializer, responses={200: ScoredSerializer, 202: ScoringJobSerializer})
    def post(self, request: Request) -> Response:
        sent = ScoreRequestSerializer(data=request.data)
        sent.is_valid(raise_exception=True)
        model = _model_for(access.user_of(request), sent.validated_data)
        with _wait() as seconds:
            job = scoring.ask(model, sent.validated_data["items"], by=access.user_of(request), wait_seconds=seconds)
        if job.state == ScoringJob.State.DONE:
            return Response({"model": model.pk, "results": job.results})
        if job.state == ScoringJob.State.FAILED:
            raise scoring.ScoringFailed(f"The worker could not score the items: {job.error}")
        where = {"Location": reverse("api:scoring-job", args=[job.pk])}
        return Response(ScoringJobSerializer(job).data, status=status.HTTP_202_ACCEPTED, headers=where)


@contextmanager
def _wait() -> Iterator[float]:
    """How long this request may wait."""
    mine = _may_wait.acquire(blocking=False)
    try:
        yield SCORE_WAIT_SECONDS if mine else 0
    finally:
        if mine:
            _may_wait.release()


def _model_for(user: User, wish: dict[str, Any]) -> RewardModel:
    """The model that is named, or the champion of the project that is named, or of the only one there is."""
    projects = access.reviewed_projects(user)
    models = RewardModel.objects.filter(project__in=projects)
    if "project" in wish:
        project = get_object_or_404(projects, slug=wish["project"])
        if "model" not in wish:
            return scoring.champion(project)
        models = models.filter(project=project)
    if "model" in wish:
        return get_object_or_404(models, pk=wish["model"])
    champions = list(models.filter(is_champion=True)[:2])
    if not champions:
        raise scoring.NoChampion("None of your projects has a champion yet: retrain one, or promote a model.")
    if len(champions) > 1:
        raise serializers.ValidationError({"model": ["You see more than one champion: name a model or a project."]})
    return champions[0]


class OneScoringJob(ForScoring, APIView):
    """A scoring job of the caller's."""

    @extend_schema(responses=ScoringJobSerializer)
    def get(self, request: Request, pk: int) -> Response:
        job = ScoringJob.objects.filter(requested_by=access.user_of(request), pk=pk).first()
        if job is None:
            raise Http404
        return Response(ScoringJobSerializer(job).data)
