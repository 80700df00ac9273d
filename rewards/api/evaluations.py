"""REST: evaluations of reward models, the jobs that make them, and their comparison across versions for download."""

from typing import Any

from django.db.models import QuerySet
from django.http import HttpResponseBase, StreamingHttpResponse
from django.urls import reverse
from django_filters import rest_framework as filters  # type: ignore[import-untyped]
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import generics, serializers, status
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotator.api.fields import validated
from annotator.api.model_serializers import ModelSerializer
from annotator.api.transfer import WhateverIsAccepted
from annotator.infrastructure.spreadsheets import csv_lines
from annotator.infrastructure.web import lane_shares, query_parameters
from annotator.models import Project
from annotator.reading import access
from rewards.access import managed_evaluation, managed_job, reviewed_evaluation, reviewed_job
from rewards.evaluation import comparison, evaluation, evaluation_jobs
from rewards.evaluation.evaluation import LONGEST_NAME
from rewards.models import Evaluation, EvaluationJob

FORMATS = ("json", "csv")


class EvaluationSerializer(ModelSerializer[Evaluation]):
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


@extend_schema_field(OpenApiTypes.BINARY)
class UploadField(serializers.FileField):
    """A file in a form. drf-spectacular would call it an address, which is what an answer would hold."""


class EvaluationRequestSerializer(serializers.Serializer[Any]):
    """The form of an upload."""

    model = serializers.IntegerField(help_text="a reward model's id")
    file = UploadField(
        help_text="rows like a snapshot's validation.jsonl, or RewardBench, RewardBench 2, RM-Bench, JudgeBench or "
        "preference pairs as published; JSON lines, a JSON list or Parquet, the first two also gzipped"
    )
    name = serializers.CharField(
        required=False, max_length=LONGEST_NAME, help_text="of the evaluation; by default the file's name"
    )


class EvaluationJobSerializer(ModelSerializer[EvaluationJob]):
    """`evaluation` is the id of the result once the state is `done`; `error` says why there is none."""

    project: "serializers.SlugRelatedField[Project]" = serializers.SlugRelatedField(
        source="reward_model.project", slug_field="slug", read_only=True
    )
    model = serializers.IntegerField(source="reward_model_id")
    version = serializers.IntegerField(source="reward_model.version")
    evaluation = serializers.IntegerField(source="evaluation_id", allow_null=True)

    class Meta:
        model = EvaluationJob
        fields = [
            "id",
            "project",
            "model",
            "version",
            "name",
            "file_name",
            "state",
            "error",
            "evaluation",
            "created_at",
            "finished_at",
        ]


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
        fields = ["name", "data_hash"]


class EvaluationJobFilter(filters.FilterSet):  # type: ignore[misc]
    model = filters.NumberFilter("reward_model")

    class Meta:
        model = EvaluationJob
        fields = ["state"]


class Evaluations(generics.ListAPIView[Evaluation]):
    """The evaluations in the projects that the caller manages or reviews."""

    serializer_class = EvaluationSerializer
    queryset = Evaluation.objects.none()
    filterset_class = EvaluationFilter

    def get_queryset(self) -> QuerySet[Evaluation]:
        projects = access.reviewed_projects(access.user_of(self.request))
        return Evaluation.objects.filter(reward_model__project__in=projects).select_related("reward_model__project")


class OneEvaluation(APIView):
    """One evaluation; managers delete those that no run judged its model by."""

    @extend_schema(responses=EvaluationSerializer)
    def get(self, request: Request, pk: int) -> Response:
        return Response(EvaluationSerializer(reviewed_evaluation(access.user_of(request), pk)).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, pk: int) -> Response:
        evaluation.delete(managed_evaluation(access.user_of(request), pk))
        return Response(status=status.HTTP_204_NO_CONTENT)


class EvaluationJobs(generics.ListCreateAPIView[EvaluationJob]):
    """The files that a project's models are or were judged by; a POST sends one, as a multipart form."""

    serializer_class = EvaluationJobSerializer
    queryset = EvaluationJob.objects.none()
    filterset_class = EvaluationJobFilter
    parser_classes = [MultiPartParser]

    def get_queryset(self) -> QuerySet[EvaluationJob]:
        project = access.reviewed_project(access.user_of(self.request), self.kwargs["slug"])
        return EvaluationJob.objects.filter(reward_model__project=project).select_related("reward_model__project")

    @extend_schema(
        request={"multipart/form-data": EvaluationRequestSerializer}, responses={202: EvaluationJobSerializer}
    )
    def post(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        user = access.user_of(request)
        project = access.managed_project(user, self.kwargs["slug"])
        lane_shares.require_share(request._request, user.pk)
        fields = validated(EvaluationRequestSerializer(data=request.data))
        model = project.reward_models.select_related("project").filter(pk=fields["model"]).first()
        if model is None:
            raise serializers.ValidationError({"model": ["The project has no reward model with this id."]})
        file = fields["file"]
        job = evaluation_jobs.request(model, file, file_name=file.name, name=fields.get("name", ""), by=user)
        location = {"Location": reverse("api:evaluation-job", args=[job.pk])}
        return Response(EvaluationJobSerializer(job).data, status=status.HTTP_202_ACCEPTED, headers=location)


class OneEvaluationJob(APIView):
    """One job; deleting it stops the work. An evaluation that it has made stays."""

    @extend_schema(responses=EvaluationJobSerializer)
    def get(self, request: Request, pk: int) -> Response:
        return Response(EvaluationJobSerializer(reviewed_job(access.user_of(request), pk)).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, pk: int) -> Response:
        evaluation_jobs.remove(managed_job(access.user_of(request), pk))
        return Response(status=status.HTTP_204_NO_CONTENT)


class ComparisonView(APIView):
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
