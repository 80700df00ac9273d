"""Scores over REST: items that a warm worker scores while the caller waits, or as a job."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import BoundedSemaphore
from typing import Any

from django.conf import settings
from django.http import Http404
from django.shortcuts import get_object_or_404
from django.urls import reverse
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotator import access
from annotator.api.scopes import ForScoring
from annotator.models import User
from rewards import scoring
from rewards.api.serializers import (
    ScoredSerializer,
    ScoreRequestSerializer,
    ScoringJobSerializer,
)
from rewards.models import RewardModel, ScoringJob

SCORE_WAIT_SECONDS = 5.0
_may_wait = BoundedSemaphore(max(1, settings.WEB_THREADS // 2))
"""Of a web process's threads so many may wait for the score worker; the other requests get their job at once."""


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
        raise scoring.NoChampion("None of your projects has a champion yet. Retrain a project, or promote a model.")
    if len(champions) > 1:
        raise serializers.ValidationError(
            {"model": ["You have access to more than one champion. Name a model or a project."]}
        )
    return champions[0]


class OneScoringJob(ForScoring, APIView):
    """A scoring job of the caller's."""

    @extend_schema(responses=ScoringJobSerializer)
    def get(self, request: Request, pk: int) -> Response:
        job = ScoringJob.objects.filter(requested_by=access.user_of(request), pk=pk).first()
        if job is None:
            raise Http404
        return Response(ScoringJobSerializer(job).data)
