"""REST: evaluations of reward models, and their comparison across versions for download."""

from typing import Any

from django.db.models import QuerySet
from django.http import HttpResponseBase, StreamingHttpResponse
from django_filters import rest_framework as filters  # type: ignore[import-untyped]
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import generics, serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotator import access
from annotator.api.transfer import WhateverIsAccepted
from annotator.exporting.spreadsheets import csv_lines
from annotator.models import Project
from annotator.web import query_parameters
from rewards import comparison
from rewards.models import Evaluation

FORMATS = ("json", "csv")


class EvaluationSerializer(serializers.ModelSerializer[Evaluation]):
    """`metrics` as the learning core measured them; the same `data_hash` is the same data."""

    project: "serializers.SlugRelatedField[Project]" = serializers.SlugRelatedField(
        source="reward_model.project", slug_field="slug", read_only=True
    )
    model = serializers.IntegerField(source="reward_model_id")
    version = serializers.IntegerField(source="reward_model.version")
    metrics = serializers.DictField()

    class Meta:
        model = Evaluation
        fields = ["id", "project", "model", "version", "name", "data_hash", "metrics", "created_at"]


class ComparisonRowSerializer(serializers.Serializer[Any]):
    """One measure of one evaluation, with its 95 % interval over prompts."""

    evaluation = serializers.CharField()
    data_hash = serializers.CharField()
    model = serializers.IntegerField()
    version = serializers.IntegerField()
    champion = serializers.BooleanField()
    part = serializers.CharField(allow_blank=True, help_text="of the data or the measures; empty: all labels")
    measure = serializers.CharField()
    value = serializers.FloatField(allow_null=True)
    low = serializers.FloatField(allow_null=True)
    high = serializers.FloatField(allow_null=True)
    n = serializers.IntegerField(allow_null=True, help_text="rows, pairs or labels that it is over")
    reason = serializers.CharField(allow_blank=True, help_text="why there is no value")


class EvaluationFilter(filters.FilterSet):  # type: ignore[misc]
    project = filters.CharFilter("reward_model__project__slug")
    model = filters.NumberFilter("reward_model")

    class Meta:
        model = Evaluation
        fields = ["name"]


class Evaluations(generics.ListAPIView[Evaluation]):
    """The evaluations in the projects that the caller manages or reviews."""

    serializer_class = EvaluationSerializer
    queryset = Evaluation.objects.none()
    filterset_class = EvaluationFilter

    def get_queryset(self) -> QuerySet[Evaluation]:
        projects = access.reviewed_projects(access.user_of(self.request))
        return Evaluation.objects.filter(reward_model__project__in=projects).select_related("reward_model__project")


class Comparison(APIView):
    """Every measure of every version, a row each: what was judged on the same data has the same `data_hash`."""

    content_negotiation_class = WhateverIsAccepted

    @extend_schema(
        responses={
            (200, "application/json"): ComparisonRowSerializer(many=True),
            (200, "text/csv"): OpenApiTypes.BINARY,
        },
        parameters=[
            OpenApiParameter("name", description="only evaluations of this name"),
            OpenApiParameter("format", enum=list(FORMATS)),
        ],
    )
    def get(self, request: Request, slug: str) -> HttpResponseBase:
        project = access.reviewed_project(access.user_of(request), slug)
        rows = comparison.rows_of(project, name=query_parameters.text(request.query_params, "name"))
        if query_parameters.choice(request.query_params, "format", FORMATS, default=FORMATS[0]) == "json":
            return Response(list(rows))
        answer = StreamingHttpResponse(csv_lines(rows, comparison.COLUMNS), content_type="text/csv; charset=utf-8")
        answer["Content-Disposition"] = f'attachment; filename="{project.slug}-comparison.csv"'
        return answer
