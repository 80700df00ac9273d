"""REST: the segments of a task, and a manager's change of them before anybody has rated the task."""

from typing import Any

from django.http import Http404
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotator.api.fields import KnownFields, ResponseIdField, validated
from annotator.api.segment_fields import CheckedField, SegmentSerializer, shown_segments
from annotator.infrastructure.limits import MOST_SEGMENTS
from annotator.models import Response as TaskResponse
from annotator.models import Task
from annotator.reading import access
from annotator.stages.annotation import change_cuts, cuts_of


@extend_schema_field(
    {
        "oneOf": [
            {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
            {"type": "array", "items": {"type": "string"}},
        ]
    }
)
class GivenSegmentsField(CheckedField):
    """Segments as pairs [start, end], or as the texts of which the response is made. Their fit is checked later."""

    default_error_messages = {
        "list": "Send the segments as a list of [start, end], or of texts.",
        "most": "A response has at most {most} segments.",
    }

    def to_internal_value(self, data: Any) -> list[Any]:
        if not isinstance(data, list) or not data:
            self.fail("list")
        if len(data) > MOST_SEGMENTS:
            self.fail("most", most=MOST_SEGMENTS)
        return data


class RecutResponseSerializer(KnownFields):
    response = ResponseIdField()
    segments = GivenSegmentsField()
    seen = serializers.ListField(
        child=serializers.ListField(child=serializers.IntegerField(), min_length=2, max_length=2),
        required=False,
        max_length=MOST_SEGMENTS,
        help_text="the segments [start, end] that you have read: if they have changed since, the answer is 409",
    )


class RecutSerializer(KnownFields):
    """Other segments for some responses of a task. Those of the others stay."""

    responses = RecutResponseSerializer(many=True)


class CutResponseSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    text = serializers.CharField()
    segments = SegmentSerializer(many=True)


class CutTaskSerializer(serializers.Serializer[Any]):
    """A task with the segments of its responses; none where the project rates whole responses."""

    task = serializers.IntegerField()
    responses = CutResponseSerializer(many=True)


class TaskSegments(APIView):
    """The segments by which a task is rated."""

    @extend_schema(responses=CutTaskSerializer)
    def get(self, request: Request, task_id: int) -> Response:
        return Response(_shown(access.managed_task(access.user_of(request), task_id)))

    @extend_schema(request=RecutSerializer, responses=CutTaskSerializer)
    def put(self, request: Request, task_id: int) -> Response:
        """Changes them, as long as nobody has rated the task."""
        task = access.managed_task(access.user_of(request), task_id)
        data = validated(RecutSerializer(data=request.data))
        wanted = {one["response"]: one["segments"] for one in data["responses"]}
        try:
            change_cuts(
                task.pk, wanted, seen={one["response"]: one["seen"] for one in data["responses"] if "seen" in one}
            )
        except TaskResponse.DoesNotExist as stranger:
            raise Http404 from stranger
        return Response(_shown(task))


def _shown(task: Task) -> dict[str, Any]:
    responses = list(task.responses.order_by("position"))
    cuts = cuts_of(task.project, task, responses)
    return {
        "task": task.public_id,
        "responses": [
            {"id": one.public_id, "text": one.text, "segments": shown_segments(cuts.get(one.pk, ()))}
            for one in responses
        ],
    }
