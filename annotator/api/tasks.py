"""REST calls that list a project's tasks and annotations, as managers and reviewers see them."""

from contextlib import nullcontext
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import (
    OpenApiParameter,
    extend_schema,
    extend_schema_field,
)
from rest_framework import generics, serializers
from rest_framework.request import Request
from rest_framework.response import Response

from annotator.api.fields import RankingField
from annotator.api.filters import AnnotationFilter
from annotator.api.model_serializers import ModelSerializer
from annotator.api.serializers import MessageSerializer, RatingOutSerializer, shown_rating
from annotator.models import Annotation, Task
from annotator.pages.data.data_form import TasksForm
from annotator.reading import access
from annotator.reading.blindness import tasks_held_by
from annotator.reading.pseudonyms import name_of
from annotator.reading.search.criteria import matching, searching


class TaskResponseSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    text = serializers.CharField()
    model = serializers.CharField()
    metadata = serializers.DictField(help_text="what came with the response")


class TaskSerializer(ModelSerializer[Task]):
    """A task as managers and reviewers see it: with model names, without anybody's ratings."""

    responses = serializers.SerializerMethodField()
    id = serializers.CharField(source="external_id")
    conversation = MessageSerializer(many=True, read_only=True)

    class Meta:
        model = Task
        fields = [
            "id",
            "conversation",
            "responses",
            "metadata",
            "priority",
            "state",
            "slots_wanted",
            "open_slots",
            "created_at",
        ]

    @extend_schema_field(TaskResponseSerializer(many=True))
    def get_responses(self, task: Task) -> list[dict[str, Any]]:
        return [
            {
                "id": response.external_id or str(response.position + 1),
                "text": response.text,
                "model": response.model,
                "metadata": response.metadata,
            }
            for response in task.responses.all()
        ]


class AnnotationSerializer(ModelSerializer[Annotation]):
    """One annotation with its ratings. Rows have to carry `pseudonym`, the rater's name in the project."""

    task = serializers.CharField(source="assignment.task.external_id")
    annotator = serializers.CharField(source="pseudonym")
    counts = serializers.BooleanField(
        source="assignment.counts", help_text="false: an extra, rejected by a reviewer, or its annotator is excluded"
    )
    extra = serializers.BooleanField(
        source="assignment.extra", help_text="it came when its task had no room left; a reviewer may accept it"
    )
    ratings = serializers.SerializerMethodField()
    ranking = RankingField(allow_null=True)

    class Meta:
        model = Annotation
        fields = [
            "id",
            "task",
            "annotator",
            "revision",
            "origin",
            "ratings",
            "preference",
            "ranking",
            "justification",
            "domain",
            "language",
            "active_seconds",
            "guideline_version",
            "submitted_at",
            "counts",
            "extra",
        ]

    @extend_schema_field(RatingOutSerializer(many=True))
    def get_ratings(self, annotation: Annotation) -> list[dict[str, Any]]:
        return [shown_rating(rating, annotation.aspects) for rating in annotation.ratings.all()]


_SEARCH = {
    "q": 'words, "quoted words" and -words to leave out, or the task\'s id',
    "label": "labelled, dropped or none",
    "spread": "at least so many levels between two raters",
    "language": "its code or English name",
    "source": "the id of an import",
    "model": "of a response; for managers",
    "reward_from": "by the champion; for managers",
    "reward_to": "by the champion; for managers",
}


@extend_schema(parameters=[OpenApiParameter(name, description=meaning) for name, meaning in _SEARCH.items()])
class Tasks(generics.ListAPIView[Task]):
    """Lists a project's tasks, for its managers and reviewers. Only managers see tasks that measure annotators.

    The filters are those of the page. With one of them, tasks that measure annotators, and tasks that the caller is
    rating at the moment, are left out, as they are there.
    """

    serializer_class = TaskSerializer
    queryset = Task.objects.none()
    filterset_fields = {"state": ["exact"], "external_id": ["exact"]}
    searches = tuple(_SEARCH)

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        with searching() if self._search() else nullcontext():
            return super().list(request, *args, **kwargs)

    def get_queryset(self) -> QuerySet[Task]:
        user = access.user_of(self.request)
        project = access.reviewed_project(user, self.kwargs["slug"])
        manages = access.manages(user, project)
        tasks: QuerySet[Task] = project.tasks.all() if manages else project.tasks.exclude(state=Task.State.GOLD)
        if search := self._search():
            form = TasksForm(project, search, manages=manages)
            if not form.is_valid():
                errors = {name: [str(message) for message in messages] for name, messages in form.errors.items()}
                raise serializers.ValidationError(errors)
            if unknown := search.keys() - form.fields.keys():
                raise serializers.ValidationError({name: ["Only managers can filter by this."] for name in unknown})
            tasks = matching(project, form.criteria(), reader=user).tasks
        return tasks.prefetch_related("responses")

    def _search(self) -> dict[str, str]:
        return {name: value for name in _SEARCH if (value := self.request.query_params.get(name))}


class Annotations(generics.ListAPIView[Annotation]):
    """Lists current annotations under pseudonyms, for managers and reviewers.

    Those of tasks that the caller is rating are left out. Reviewers do not see those of tasks that measure annotators.
    """

    serializer_class = AnnotationSerializer
    queryset = Annotation.objects.none()
    filterset_class = AnnotationFilter

    def get_queryset(self) -> QuerySet[Annotation]:
        user = access.user_of(self.request)
        project = access.reviewed_project(user, self.kwargs["slug"])
        annotations = Annotation.objects.current().for_project(project.pk)
        annotations = annotations.exclude(assignment__task__in=tasks_held_by(user))
        if not access.manages(user, project):
            annotations = annotations.exclude(assignment__task__state=Task.State.GOLD)
        named = annotations.annotate(pseudonym=name_of("assignment__annotator", "assignment__task__project"))
        return named.select_related("assignment__task").prefetch_related("ratings")
