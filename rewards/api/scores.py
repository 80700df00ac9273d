"""REST: items are scored by a warm worker while the caller waits, or as a job."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import BoundedSemaphore
from typing import Any

from django.conf import settings
from django.http import Http404
from django.shortcuts import get_object_or_404
from django.urls import reverse
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotator.api.fields import validated
from annotator.api.scopes import ForScoring
from annotator.infrastructure.refusals import Refusal
from annotator.models import User
from annotator.reading import access
from rewards import scoring
from rewards.api.serializers import (
    ScoredSerializer,
    ScoreRequestSerializer,
    ScoringJobSerializer,
)
from rewards.models import RewardModel, ScoringJob

BETTER = (
    "Sunlight is scattered by the molecules of the air, and blue light much more than red light. So blue light reaches "
    "your eyes from every part of the sky."
)
WORSE = "Because it reflects the ocean."
"""The demo's first model orders these two as people would."""

SCORE_WAIT_SECONDS = 5.0
_may_wait = BoundedSemaphore(max(1, settings.WEB_THREADS // 2))
"""Half of a web process's threads may wait for the score worker; the other requests get their job at once.

Without the limit a slow score worker would leave no thread for the pages.
"""


class ScoreItems(ForScoring, APIView):
    """Scores items by a warm worker: 200 with the results, or 202 with a job where it takes longer."""

    @extend_schema(
        request=ScoreRequestSerializer,
        responses={200: ScoredSerializer, 202: ScoringJobSerializer},
        examples=[
            OpenApiExample(
                "Two answers",
                {
                    "project": "mine",
                    "items": [
                        {"conversation": [{"role": "user", "content": "Why is the sky blue?"}], "response": text}
                        for text in (BETTER, WORSE)
                    ],
                },
                request_only=True,
            ),
            OpenApiExample(
                "Their rewards",
                {
                    "model": 1,
                    "results": [
                        {"scores": {"helpfulness": 2.91}, "reward": 4.76, "uncertainty": 0.34, "truncated": False},
                        {"scores": {"helpfulness": 2.35}, "reward": 3.92, "uncertainty": 0.47, "truncated": False},
                    ],
                },
                response_only=True,
            ),
        ],
    )
    def post(self, request: Request) -> Response:
        data = validated(ScoreRequestSerializer(data=request.data))
        model = _model_for(access.user_of(request), data)
        with _wait() as seconds:
            job = scoring.ask(model, data["items"], by=access.user_of(request), wait_seconds=seconds)
        if job.state == ScoringJob.State.DONE:
            return Response({"model": model.pk, "results": job.results})
        if job.state == ScoringJob.State.FAILED:
            raise scoring.ScoringFailed(f"The worker could not score the items: {job.error}")
        location = {"Location": reverse("api:scoring-job", args=[job.pk])}
        return Response(ScoringJobSerializer(job).data, status=status.HTTP_202_ACCEPTED, headers=location)


@contextmanager
def _wait() -> Iterator[float]:
    """Yields the seconds that this request may wait."""
    acquired = _may_wait.acquire(blocking=False)
    try:
        yield SCORE_WAIT_SECONDS if acquired else 0
    finally:
        if acquired:
            _may_wait.release()


def _model_for(user: User, data: dict[str, Any]) -> RewardModel:
    """Returns the model that the request names, or the champion of the project it names, or the only champion."""
    projects = access.reviewed_projects(user)
    models = RewardModel.objects.filter(project__in=projects)
    if "project" in data:
        project = get_object_or_404(projects, slug=data["project"])
        if "model" not in data:
            return scoring.champion(project)
        models = models.filter(project=project)
    if "model" in data:
        return get_object_or_404(models, pk=data["model"])
    champions = list(models.filter(is_champion=True)[:2])
    if not champions:
        raise Refusal(
            "None of your projects has a champion yet. Retrain a project, or promote a model.", code="no_champion"
        )
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
