"""REST: the models whose responses were rated, ranked by people and by the reward model."""

from typing import Any

from django.http import HttpResponseBase, StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotator.api.transfer import WhateverIsAccepted
from annotator.infrastructure.spreadsheets import csv_lines
from annotator.infrastructure.web import query_parameters
from annotator.reading import access
from rewards.leaderboard.rated_models import CHAMPION, COLUMNS, PEOPLE, rated_models, rows_of

FORMATS = ("json", "csv")


class RankedModelSerializer(serializers.Serializer[Any]):
    """One measure of one model, with its 95 % interval over prompts."""

    model = serializers.CharField(help_text="the name under which its responses were imported")
    # A pattern, as an enum would take a name in the schema that others may want.
    by = serializers.RegexField(f"^({PEOPLE}|{CHAMPION})$")
    measure = serializers.CharField(
        help_text="a mean label, the win rate, the same at equal lengths (arXiv 2404.04475), the strength in logits"
    )
    value = serializers.FloatField()
    low = serializers.FloatField(allow_null=True, help_text="null where a single prompt is behind it")
    high = serializers.FloatField(allow_null=True)
    n = serializers.IntegerField(help_text="labels or comparisons")
    prompts = serializers.IntegerField()


class ModelRanking(APIView):
    """The models whose responses were rated, a row for each measure; of large projects, the newest tasks are read."""

    content_negotiation_class = WhateverIsAccepted

    @extend_schema(
        responses={
            (200, "application/json"): RankedModelSerializer(many=True),
            (200, "text/csv"): OpenApiTypes.BINARY,
        },
        parameters=[OpenApiParameter("format", enum=list(FORMATS))],
    )
    def get(self, request: Request, slug: str) -> HttpResponseBase:
        project = access.reviewed_project(access.user_of(request), slug)
        wanted = query_parameters.choice(request.query_params, "format", FORMATS, default=FORMATS[0])
        rows = rows_of(rated_models(project))
        if wanted == "json":
            return Response(list(rows))
        answer = StreamingHttpResponse(csv_lines(rows, COLUMNS), content_type="text/csv; charset=utf-8")
        answer["Content-Disposition"] = f'attachment; filename="{project.slug}-model-ranking.csv"'
        return answer
