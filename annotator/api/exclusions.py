"""REST calls by which managers exclude annotators, so that their work does not count, and readmit them."""

from dataclasses import asdict
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import generics, serializers, status
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from annotator.api.fields import KnownFields, validated
from annotator.api.filters import ExclusionFilter
from annotator.api.model_serializers import ModelSerializer
from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.web.query_parameters import flag
from annotator.models import Exclusion, Project, User
from annotator.reading import access
from annotator.reading.pseudonyms import Pseudonyms
from annotator.stages.review import exclude, exclusion_preview, readmission_preview, readmit
from annotator.stages.review.exclusions import counting, person_named


class ExclusionSerializer(ModelSerializer[Exclusion]):
    annotator = serializers.SerializerMethodField(help_text="pseudonym")
    by = serializers.CharField(source="by.username", read_only=True)

    class Meta:
        model = Exclusion
        fields = ["annotator", "reason", "by", "made_at"]

    def get_annotator(self, exclusion: Exclusion) -> str:
        return str(self.context["pseudonyms"][exclusion.annotator_id])


class NamedSerializer(serializers.Serializer[Any]):
    annotator = serializers.CharField(max_length=150, help_text="pseudonym or user name")


class NewExclusionSerializer(KnownFields):
    """The annotator to exclude, by pseudonym or user name, and the reason; a dry run needs no reason."""

    annotator = serializers.CharField(max_length=150, help_text="pseudonym or user name")
    reason = serializers.CharField(required=False, allow_blank=True, default="", max_length=5_000)


class ExclusionPreviewSerializer(serializers.Serializer[Any]):
    """What would change. For a readmission, only the amount of work that comes back is counted."""

    annotations = serializers.IntegerField()
    tasks = serializers.IntegerField()
    tasks_losing_labels = serializers.IntegerField()
    tasks_reopened = serializers.IntegerField()
    labels_changed = serializers.IntegerField()
    estimated = serializers.BooleanField(help_text="all numbers come from a part of very many tasks")


def _annotator(project: Project, name: str) -> User:
    person = person_named(project, name)
    if person is None:
        raise NotFound(f"Nobody in this project has the pseudonym or user name {name!r}.")
    return person


DRY_RUN = OpenApiParameter("dry_run", bool, description="1: say what would change, and change nothing")


class Exclusions(generics.ListAPIView[Exclusion]):
    """Lists the annotators whose work does not count in the project, for its managers."""

    serializer_class = ExclusionSerializer
    queryset = Exclusion.objects.none()
    filterset_class = ExclusionFilter

    def get_queryset(self) -> QuerySet[Exclusion]:
        return self._project().exclusions.select_related("by").order_by("pk")

    def get_serializer_context(self) -> dict[str, Any]:
        return {**super().get_serializer_context(), "pseudonyms": Pseudonyms(self._project().pk)}

    @extend_schema(
        description="Takes all that an annotator did out of the labels: 201 once it is done, 202 where the light "
        "worker goes on with it.",
        request=NewExclusionSerializer,
        parameters=[DRY_RUN],
        responses={200: ExclusionPreviewSerializer, 201: ExclusionSerializer, 202: ExclusionSerializer},
    )
    def post(self, request: Request, slug: str) -> Response:
        project = self._project()
        data = validated(NewExclusionSerializer(data=request.data))
        annotator = _annotator(project, data["annotator"])
        if flag(request.query_params, "dry_run"):
            return Response(asdict(exclusion_preview(project, annotator)))
        reason = data["reason"]
        if not reason:
            raise serializers.ValidationError({"reason": ["Give a reason. It is stored with the exclusion."]})
        exclusion = exclude(project, annotator, reason=reason, by=access.user_of(request), now=database_now())
        done = not counting(project, annotator).exists()
        return Response(
            self.get_serializer(exclusion).data, status=status.HTTP_201_CREATED if done else status.HTTP_202_ACCEPTED
        )

    @extend_schema(
        description="Brings an annotator's work back: 204 once it is done, 202 where the light worker goes on with it; "
        "until then the exclusion is listed.",
        parameters=[NamedSerializer, DRY_RUN],
        responses={200: ExclusionPreviewSerializer, 202: ExclusionSerializer, 204: None},
    )
    def delete(self, request: Request, slug: str) -> Response:
        project = self._project()
        data = validated(NamedSerializer(data=request.query_params))
        annotator = _annotator(project, data["annotator"])
        if flag(request.query_params, "dry_run"):
            return Response(asdict(readmission_preview(project, annotator)))
        unfinished = readmit(project, annotator, now=database_now())
        if unfinished:
            return Response(self.get_serializer(unfinished).data, status=status.HTTP_202_ACCEPTED)
        return Response(status=status.HTTP_204_NO_CONTENT)

    def _project(self) -> Project:
        return access.managed_project(access.user_of(self.request), self.kwargs["slug"])
