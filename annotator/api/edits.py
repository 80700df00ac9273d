"""REST calls on the better versions of responses that annotators wrote: list them, and have them rated."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from annotator.api.fields import KnownFields, validated
from annotator.api.filters import EditFilter
from annotator.api.model_serializers import ModelSerializer
from annotator.infrastructure.db.clock import database_now
from annotator.models import Rating
from annotator.models.public_ids import LARGEST
from annotator.reading import access
from annotator.stages.review import edits as stage


class EditSerializer(ModelSerializer[Rating]):
    """A better version of a response. Rows have to come from `edits_of`."""

    task = serializers.CharField(source="response.task.external_id")
    response = serializers.IntegerField(source="response.position", help_text="its place in the task, from 0")
    annotator = serializers.CharField(source="pseudonym")
    original = serializers.CharField(source="response.text")
    summary = serializers.CharField(source="edit_summary")
    submitted_at = serializers.DateTimeField(source="annotation.submitted_at")
    rated_as = serializers.CharField(allow_null=True, help_text="the task that it has become")

    class Meta:
        model = Rating
        fields = ["id", "task", "response", "annotator", "original", "edit", "summary", "submitted_at", "rated_as"]


class NewTasksSerializer(KnownFields):
    edits = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=LARGEST), min_length=1, max_length=stage.MOST_AT_ONCE
    )


class MadeSerializer(serializers.Serializer[Any]):
    created = serializers.IntegerField(help_text="new tasks; an edit that has one already makes none")


class Edits(generics.ListAPIView[Rating]):
    """Lists the edits of the project that count, the newest first, for its managers."""

    serializer_class = EditSerializer
    queryset = Rating.objects.none()
    filterset_class = EditFilter

    def get_queryset(self) -> QuerySet[Rating]:
        user = access.user_of(self.request)
        project = access.managed_project(user, self.kwargs["slug"])
        return stage.edits_of(project, reader=user)

    @extend_schema(
        description="Makes a task of each edit: the response and its better version, so that both are rated. Whoever "
        "wrote the edit does not get the task.",
        request=NewTasksSerializer,
        responses={201: MadeSerializer},
    )
    def post(self, request: Request, slug: str) -> Response:
        user = access.user_of(request)
        project = access.managed_project(user, slug)
        data = validated(NewTasksSerializer(data=request.data))
        created = stage.make_tasks(project, data["edits"], by=user, now=database_now())
        return Response(MadeSerializer({"created": created}).data, status=status.HTTP_201_CREATED)
