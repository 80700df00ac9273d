"""REST calls for annotators: next, annotation, skip, report, heartbeat and release."""

from functools import lru_cache
from time import monotonic
from typing import Any
from uuid import UUID

from django.http import Http404
from drf_spectacular.utils import (
    OpenApiExample,
    OpenApiParameter,
    extend_schema,
)
from rest_framework import serializers, status
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotator.api.fields import LARGEST, KnownFields, RankingField, validated
from annotator.api.model_serializers import ModelSerializer
from annotator.api.scopes import ForAnnotators
from annotator.api.segment_fields import (
    shown_scores,
    shown_segments,
)
from annotator.api.serializers import LeasedResponseSerializer, MessageSerializer, StoredRatingSerializer
from annotator.api.submissions import (
    GapSerializer,
    ReportSerializer,
    SkipSerializer,
    SubmissionSerializer,
    submission_of,
)
from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.web.query_parameters import flag
from annotator.models import Assignment, Attribute, Project, Rubric
from annotator.models.public_ids import response_number
from annotator.models.rubric import RUBRIC_SECONDS
from annotator.reading import access
from annotator.stages import annotation, assignment
from annotator.stages.annotation import Submitted
from annotator.stages.annotation.cuts import cuts_of
from annotator.stages.assignment import Claim

ASKED = ["preference", "ranking", "confidence", "safe", "feedback", "edit", "domain", "language", "segments"]
"""What a project may ask of an annotator besides the scores."""


class AttributeSerializer(ModelSerializer[Attribute]):
    class Meta:
        model = Attribute
        fields = ["key", "name", "description", "levels", "checks", "scope"]


class RubricSerializer(ModelSerializer[Rubric]):
    attributes = AttributeSerializer(many=True, read_only=True)

    class Meta:
        model = Rubric
        fields = ["key", "version", "name", "attributes"]


class LeasedTaskSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    conversation = MessageSerializer(many=True)
    responses = LeasedResponseSerializer(many=True)


class LeaseSerializer(serializers.Serializer[Any]):
    """A leased task, or null and the reason for it. Responses are in this annotator's own order."""

    assignment = serializers.IntegerField(allow_null=True)
    lease_expires_at = serializers.DateTimeField(required=False)
    task = LeasedTaskSerializer(required=False)
    asks = serializers.ListField(
        child=serializers.ChoiceField(choices=ASKED),
        required=False,
        help_text="what a rating has to answer besides scores, by the names of its fields",
    )
    rubric = RubricSerializer(required=False)
    reason = serializers.CharField(required=False)
    detail = serializers.CharField(required=False)


class AheadSerializer(KnownFields):
    """Who holds tasks ahead: a number that a program makes for itself, and the assignment that it shows now."""

    shift = serializers.UUIDField()
    shown = serializers.IntegerField(required=False, allow_null=True, default=None, min_value=1, max_value=LARGEST)


class LeasesAheadSerializer(serializers.Serializer[Any]):
    leases = LeaseSerializer(many=True)


class StoredAnnotationSerializer(serializers.Serializer[Any]):
    """The rating as the database holds it now."""

    annotation = serializers.IntegerField()
    assignment = serializers.IntegerField()
    revision = serializers.IntegerField()
    ratings = StoredRatingSerializer(many=True)
    ranking = RankingField(allow_null=True)
    submitted_at = serializers.DateTimeField()
    counts = serializers.BooleanField(help_text="false: the task had no room left, so it is kept as an extra")
    next = LeaseSerializer(required=False)


class SkippedSerializer(serializers.Serializer[Any]):
    assignment = serializers.IntegerField()
    reason = serializers.CharField()
    note = serializers.CharField()


class ReportedSerializer(serializers.Serializer[Any]):
    assignment = serializers.IntegerField()
    category = serializers.CharField()
    note = serializers.CharField()


class NotedGapSerializer(serializers.Serializer[Any]):
    assignment = serializers.IntegerField()
    attribute = serializers.CharField()


class RenewedSerializer(serializers.Serializer[Any]):
    assignment = serializers.IntegerField()
    lease_expires_at = serializers.DateTimeField()


class Next(ForAnnotators, APIView):
    """Leases the next task to the caller, or says why there is none."""

    @extend_schema(
        request=None,
        responses=LeaseSerializer,
        examples=[
            OpenApiExample(
                "A task",
                {
                    "assignment": 266,
                    "lease_expires_at": "2026-01-31T12:30:00Z",
                    "task": {
                        "id": 773427283218141,
                        "conversation": [{"role": "user", "content": "Name a prime above 10."}],
                        "responses": [
                            {"id": 1323585687578924, "text": "11 is one."},
                            {"id": 860591582769539, "text": "12, I think."},
                        ],
                    },
                    "asks": ["preference"],
                },
            ),
            OpenApiExample(
                "No task", {"assignment": None, "reason": "all_done", "detail": "All tasks have been rated."}
            ),
        ],
    )
    def post(self, request: Request, slug: str) -> Response:
        project = access.membership(access.user_of(request), slug).project
        return Response(lease(assignment.claim(project, access.user_of(request), now=database_now())))


class TasksAhead(ForAnnotators, APIView):
    """Leases the caller's next tasks before they are shown, as many as the project and an equal share allow.

    The answer has all that the caller holds ahead, in the order in which it is to be shown.
    """

    @extend_schema(request=AheadSerializer, responses=LeasesAheadSerializer)
    def post(self, request: Request, slug: str) -> Response:
        user = access.user_of(request)
        project = access.membership(user, slug).project
        data = validated(AheadSerializer(data=request.data))
        held = assignment.stock_up(project, user, **data, now=database_now())
        return Response({"leases": [lease(claimed) for claimed in assignment.claims_of(held)]})

    @extend_schema(parameters=[OpenApiParameter("shift", UUID, required=True)], responses={204: None})
    def delete(self, request: Request, slug: str) -> Response:
        """Gives back what the caller holds ahead for this shift."""
        user = access.user_of(request)
        access.membership(user, slug)
        data = validated(AheadSerializer(data={"shift": request.query_params.get("shift", "")}))
        assignment.let_go(user, shift=data["shift"])
        return Response(status=status.HTTP_204_NO_CONTENT)


class SubmitAnnotation(ForAnnotators, APIView):
    """Stores the caller's rating: 201 the first time, 200 for the same again or a revision."""

    @extend_schema(
        request=SubmissionSerializer,
        responses={200: StoredAnnotationSerializer, 201: StoredAnnotationSerializer},
        parameters=[OpenApiParameter("next", bool, description="1: answer with the next task's lease under `next`")],
        examples=[
            OpenApiExample(
                "Two responses",
                {
                    "ratings": [
                        {
                            "response": 1323585687578924,
                            "scores": {
                                "helpfulness": 4,
                                "correctness": 4,
                                "coherence": 4,
                                "complexity": 1,
                                "verbosity": 2,
                            },
                        },
                        {
                            "response": 860591582769539,
                            "scores": {
                                "helpfulness": 0,
                                "correctness": 0,
                                "coherence": 3,
                                "complexity": 1,
                                "verbosity": 2,
                            },
                        },
                    ],
                    "preference": -2,
                    "justification": "12 is not a prime.",
                },
                request_only=True,
            )
        ],
    )
    def put(self, request: Request, assignment_id: int) -> Response:
        user, now, wants_next = access.user_of(request), database_now(), flag(request.query_params, "next")
        try:
            submission = submission_of(request.data)
        except ValidationError:
            # A stranger gets 404, whatever they send: 400 would reveal that the assignment exists.
            access.own_assignment(user, assignment_id)
            raise
        try:
            if wants_next:
                done, claimed = annotation.submit_and_claim(user, assignment_id, submission, now=now)
                answer = stored(done) | {"next": lease(claimed)}
            else:
                done = annotation.submit_own(user, assignment_id, submission, now=now)
                answer = stored(done)
        except Assignment.DoesNotExist as stranger:
            raise Http404 from stranger
        return Response(answer, status=status.HTTP_201_CREATED if done.created else status.HTTP_200_OK)


class SkipTask(ForAnnotators, APIView):
    """Skips the task. The reason `pii` takes it from everyone until a manager decides."""

    @extend_schema(
        request=SkipSerializer,
        responses=SkippedSerializer,
        examples=[OpenApiExample("Not mine to judge", {"reason": "needs_coding"}, request_only=True)],
    )
    def post(self, request: Request, assignment_id: int) -> Response:
        mine = access.own_assignment(access.user_of(request), assignment_id)
        data = validated(SkipSerializer(data=request.data))
        done = annotation.skip(mine.pk, **data, now=database_now())
        return Response({"assignment": mine.pk, "reason": done.reason, "note": done.note})


class ReportTask(ForAnnotators, APIView):
    """Reports unsafe content; the task is taken from everyone until a manager decides."""

    @extend_schema(request=ReportSerializer, responses=ReportedSerializer)
    def post(self, request: Request, assignment_id: int) -> Response:
        mine = access.own_assignment(access.user_of(request), assignment_id)
        data = validated(ReportSerializer(data=request.data))
        done = annotation.report(mine.pk, **data, now=database_now())
        return Response({"assignment": mine.pk, "category": done.category, "note": done.note})


class GuidelineGaps(ForAnnotators, APIView):
    """Says that the guidelines are silent about the task, or one of its scales. Reviewers look at it; work goes on."""

    @extend_schema(request=GapSerializer, responses=NotedGapSerializer)
    def post(self, request: Request, assignment_id: int) -> Response:
        mine = access.own_assignment(access.user_of(request), assignment_id)
        data = validated(GapSerializer(data=request.data))
        gap = annotation.note_gap(mine.pk, **data, now=database_now())
        return Response({"assignment": mine.pk, "attribute": gap.attribute})


class Heartbeat(ForAnnotators, APIView):
    """Renews the caller's lease on a task."""

    @extend_schema(request=None, responses=RenewedSerializer)
    def post(self, request: Request, assignment_id: int) -> Response:
        mine = access.own_assignment(access.user_of(request), assignment_id)
        renewed = assignment.heartbeat(mine.pk, now=database_now())
        return Response({"assignment": mine.pk, "lease_expires_at": renewed.lease_expires_at})


class OneAssignment(ForAnnotators, APIView):
    """Gives a leased task back."""

    @extend_schema(responses={204: None})
    def delete(self, request: Request, assignment_id: int) -> Response:
        assignment.give_back(access.own_assignment(access.user_of(request), assignment_id).pk, now=database_now())
        return Response(status=status.HTTP_204_NO_CONTENT)


def lease(claimed: Claim) -> dict[str, Any]:
    """Returns what an annotator may know of a task: no model names, nobody's ratings, no scores."""
    leased = claimed.assignment
    if leased is None:
        return {"assignment": None, "reason": claimed.reason, "detail": claimed.explanation}
    shown: list[dict[str, Any]] = [{"id": response.public_id, "text": response.text} for response in claimed.responses]
    if leased.task.project.aspects():
        cuts = cuts_of(leased.task.project, leased.task, claimed.responses)
        for response, row in zip(claimed.responses, shown, strict=True):
            row["segments"] = shown_segments(cuts[response.pk])
    return {
        "assignment": leased.pk,
        "lease_expires_at": leased.lease_expires_at,
        "task": {
            "id": leased.task.public_id,
            "conversation": leased.task.conversation,
            "responses": shown,
        },
        "asks": _asked(leased.task.project, len(claimed.responses)),
        "rubric": _rubric(leased.task.project.rubric_id, int(monotonic() // RUBRIC_SECONDS)),
    }


def _asked(project: Project, responses: int) -> list[str]:
    asked = {
        "preference": project.ask_preference and responses == 2,
        "ranking": project.asks_for_ranking(responses),
        "confidence": project.ask_confidence,
        "safe": project.ask_safety,
        "feedback": project.ask_feedback,
        "edit": project.ask_edit,
        "domain": bool(project.domains),
        "language": project.ask_language,
        "segments": bool(project.aspects()),
    }
    return [name for name, is_asked in asked.items() if is_asked]


@lru_cache(maxsize=64)
def _rubric(rubric_id: int, moment: int) -> Any:
    """Returns the rubric as JSON, read once for each `moment`: every task's answer needs it, and it hardly changes."""
    return RubricSerializer(Rubric.objects.prefetch_related("attributes").get(pk=rubric_id)).data


def _stored_rating(done: Submitted, response: int) -> dict[str, Any]:
    rating: dict[str, Any] = {"response": response_number(response), "scores": done.scores[response]}
    if response in done.segments:
        rating["segments"] = shown_scores(done.annotation.aspects, done.segments[response])
    return rating


def stored(done: Submitted) -> dict[str, Any]:
    """Returns the stored rating as the database holds it, not as it was sent."""
    row = done.annotation
    return {
        "annotation": row.pk,
        "assignment": row.assignment_id,
        "revision": row.revision,
        "ratings": [_stored_rating(done, response) for response in done.scores],
        "ranking": row.ranking and [[response_number(response) for response in tier] for tier in row.ranking],
        "submitted_at": row.submitted_at,
        "counts": row.assignment.counts,
    }
