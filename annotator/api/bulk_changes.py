"""REST calls by which managers change many tasks at once, list such changes and undo them."""

from dataclasses import asdict
from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotator.api.fields import KnownFields, validated
from annotator.api.model_serializers import ModelSerializer
from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.web.query_parameters import flag
from annotator.models import BulkChange
from annotator.models.public_ids import LARGEST
from annotator.pages.data.data_form import TasksForm
from annotator.reading import access
from annotator.reading.search import criteria
from annotator.reading.search.criteria import MOST_TASKS
from annotator.stages.review import bulk_changes as stage


class BulkChangeSerializer(ModelSerializer[BulkChange]):
    by = serializers.CharField(source="by.username", default="", read_only=True)

    class Meta:
        model = BulkChange
        fields = [
            "id",
            "action",
            "priority",
            "by",
            "made_at",
            "chosen",
            "changed",
            "finished_at",
            "undo_asked_at",
            "put_back",
            "undone_at",
        ]


class FiltersSerializer(KnownFields):
    """The filters of the list of tasks; an empty one does not matter."""

    q = serializers.CharField(required=False, help_text='words, "quoted words" and -words to leave out')
    state = serializers.CharField(required=False)
    # Both names are attributes of serializers too, which declared fields never become.
    label = serializers.CharField(required=False, help_text="labelled, dropped or none")  # type: ignore[assignment]
    spread = serializers.IntegerField(required=False, help_text="at least")
    language = serializers.CharField(required=False)
    source = serializers.IntegerField(required=False, help_text="the id of an import")  # type: ignore[assignment]
    model = serializers.CharField(required=False, help_text="of a response")
    reward_from = serializers.FloatField(required=False)
    reward_to = serializers.FloatField(required=False)


class NewBulkChangeSerializer(KnownFields):
    """What to do, and with which tasks: `tasks` by their public numbers, or `filters`; `{}` selects all."""

    action = serializers.ChoiceField(choices=BulkChange.Action.choices)
    priority = serializers.IntegerField(required=False, help_text="the new one, for the action `priority`")
    tasks = serializers.ListField(
        child=serializers.IntegerField(min_value=0, max_value=LARGEST), required=False, max_length=MOST_TASKS
    )
    filters = FiltersSerializer(required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if ("tasks" in attrs) == ("filters" in attrs):
            raise serializers.ValidationError({"tasks": ["Give either `tasks` or `filters`."]})
        return attrs


class BulkChangePreviewSerializer(serializers.Serializer[Any]):
    """What would change."""

    chosen = serializers.IntegerField()
    changing = serializers.IntegerField(help_text="the others are in a state that does not allow it, or are so already")
    labels = serializers.IntegerField(help_text="that the exports would lose or, for reopen and release, gain")
    leases = serializers.IntegerField(help_text="of people who are at one of the tasks")


class BulkChanges(generics.ListAPIView[BulkChange]):
    """Lists the changes of many tasks at once, for the project's managers."""

    serializer_class = BulkChangeSerializer
    queryset = BulkChange.objects.none()
    filterset_fields = ("action",)

    def get_queryset(self) -> QuerySet[BulkChange]:
        project = access.managed_project(access.user_of(self.request), self.kwargs["slug"])
        return project.bulk_changes.select_related("by")

    @extend_schema(
        description="Changes many tasks: their priority, `retire`, `reopen` (retired ones), and the decisions on "
        "quarantined ones, `release` and `uphold`. 201 once it is done, 202 where the light worker goes on with it.",
        request=NewBulkChangeSerializer,
        parameters=[OpenApiParameter("dry_run", bool, description="1: say what would change, and change nothing")],
        responses={200: BulkChangePreviewSerializer, 201: BulkChangeSerializer, 202: BulkChangeSerializer},
    )
    def post(self, request: Request, slug: str) -> Response:
        user = access.user_of(request)
        project = access.managed_project(user, slug)
        data = validated(NewBulkChangeSerializer(data=request.data))
        if "tasks" in data:
            tasks = criteria.named(project, data["tasks"], reader=user)
        else:
            filters = TasksForm(project, {name: str(value) for name, value in data["filters"].items()}, manages=True)
            if not filters.is_valid():
                errors = {name: [str(message) for message in messages] for name, messages in filters.errors.items()}
                raise serializers.ValidationError({"filters": errors})
            tasks = criteria.found(project, filters.criteria(), reader=user)
        what = {"action": data["action"], "priority": data.get("priority")}
        if flag(request.query_params, "dry_run"):
            return Response(asdict(stage.bulk_change_preview(project, tasks, **what)))
        change = stage.change_many(project, tasks, **what, by=user, now=database_now())
        done = status.HTTP_201_CREATED if change.finished_at else status.HTTP_202_ACCEPTED
        return Response(BulkChangeSerializer(change).data, status=done)


class UndoOfBulkChange(APIView):
    """Puts the tasks of a change back that still are as it left them.

    The status is 200 once it is done, and 202 if the light worker continues.
    """

    @extend_schema(request=None, responses={200: BulkChangeSerializer, 202: BulkChangeSerializer})
    def post(self, request: Request, slug: str, change_id: int) -> Response:
        project = access.managed_project(access.user_of(request), slug)
        change = get_object_or_404(BulkChange.objects.filter(project=project), pk=change_id)
        done = stage.undo(change, now=database_now())
        return Response(
            BulkChangeSerializer(done).data, status=status.HTTP_200_OK if done.undone_at else status.HTTP_202_ACCEPTED
        )
