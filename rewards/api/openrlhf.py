"""OpenRLHF's remote reward protocol (`--reward.remote_url`): {query, prompts} in, {rewards, scores, extra_logs} out.

Its trainers can be given an address only, so the token is the password in that address, which clients send as a header.
They ask without end, so no job is kept, and the audit gets one entry an hour.
"""

from functools import lru_cache
from typing import Any

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotator.api.authentication import TokenAsPassword
from annotator.api.fields import validated
from annotator.api.scopes import ForScoring
from annotator.infrastructure import audit
from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.refusals import Refusal
from annotator.infrastructure.web import lane_shares, query_parameters
from annotator.reading import access
from rewards import scoring
from rewards.evaluation.chat_markup import item_of
from rewards.models import RewardModel

MOST_QUERIES = 4_096
MOST_CHARACTERS = 500_000
"""The longest query: more than a model with a window of 100,000 tokens reads."""
WAIT_SECONDS = 150.0
"""OpenRLHF gives up after 180."""


class RewardRequestSerializer(serializers.Serializer[Any]):
    """Other keys that a trainer sends, like its labels, are ignored."""

    query = serializers.ListField(
        child=serializers.CharField(trim_whitespace=False, max_length=MOST_CHARACTERS),
        allow_empty=False,
        help_text="prompt + response, as decoded",
    )
    prompts = serializers.ListField(
        child=serializers.CharField(trim_whitespace=False, max_length=MOST_CHARACTERS),
        help_text="of each query its prompt",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if len(attrs["query"]) != len(attrs["prompts"]):
            raise serializers.ValidationError({"prompts": ["There must be one prompt for each query."]})
        return attrs


class RewardsSerializer(serializers.Serializer[Any]):
    """The rewards in the order of the queries; `scores` repeats the rewards, `extra_logs` has a list per attribute."""

    rewards = serializers.ListField(child=serializers.FloatField())
    scores = serializers.ListField(child=serializers.FloatField())
    extra_logs = serializers.DictField(child=serializers.ListField(child=serializers.FloatField()))


class OpenRLHF(ForScoring, APIView):
    """Rewards for an OpenRLHF trainer, of the project's champion or of the model that the address names."""

    authentication_classes = [TokenAsPassword]

    @extend_schema(
        request=RewardRequestSerializer,
        responses=RewardsSerializer,
        parameters=[OpenApiParameter("model", int)],
    )
    def post(self, request: Request, slug: str) -> Response:
        user = access.user_of(request)
        lane_shares.require_share(request._request, user.pk)
        project = get_object_or_404(access.reviewed_projects(user), slug=slug)
        pk = query_parameters.number(request.query_params, "model")
        model = scoring.champion(project) if pk is None else get_object_or_404(RewardModel, project=project, pk=pk)
        # Counted before the serializer looks at each one, which would cost time for a list of any length.
        queries = request.data.get("query") if isinstance(request.data, dict) else None
        if isinstance(queries, list) and len(queries) > MOST_QUERIES:
            raise Refusal(f"Send at most {MOST_QUERIES} queries at once.", code="too_large", status=413)
        data = validated(RewardRequestSerializer(data=request.data))
        pairs = zip(data["query"], data["prompts"], strict=True)
        items = [item_of(query, prompt) for query, prompt in pairs]
        _note(model.pk, user.pk, f"{database_now():%Y-%m-%d %H}")
        results = scoring.results_of(model, items, by=user, wait_seconds=WAIT_SECONDS)
        rewards = [result["reward"] for result in results]
        logs = {key: [result["scores"][key] for result in results] for key in model.attributes}
        return Response({"rewards": rewards, "scores": rewards, "extra_logs": logs})


@lru_cache(maxsize=1_024)
def _note(model_id: int, _user_id: int, hour: str) -> None:
    """Writes an audit entry once an hour in each process."""
    # The cache is the limit: a trainer asks a hundred times a second, and the hour is part of the key.
    model = RewardModel.objects.select_related("project").get(pk=model_id)
    audit.record("scoring.asked", f"model version {model.version}", project=model.project, by="OpenRLHF", hour=hour)
