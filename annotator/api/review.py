"""REST calls for reviewers: the queue, authoritative ratings and verdicts."""

from typing import Any

from django.db.models import QuerySet
from django_filters import rest_framework as filters  # type: ignore[import-untyped]
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import generics, serializers, status
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param
from rest_framework.views import APIView

from annotator.api.fields import KnownFields, RankingField, ResponseIdField, ScoreField, WholeNumberField, validated
from annotator.api.model_serializers import ModelSerializer
from annotator.api.pagination import CursorPages
from annotator.api.segment_fields import SegmentsField, shown_scores, shown_segments
from annotator.api.serializers import LeasedResponseSerializer, MessageSerializer, RatingOutSerializer, shown_rating
from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.limits import LONGEST_NOTE
from annotator.models import Adjudication, Task, Verdict
from annotator.models import Response as TaskResponse
from annotator.models.public_ids import response_number
from annotator.reading import access
from annotator.reading.search.listing import with_beginnings
from annotator.stages.review import adjudicate, close_gaps, judge, withdraw
from annotator.stages.review.queue import QueueKey, queue_from, waiting
from annotator.stages.review.rating_sheets import SheetRater, reviewed
from annotator.stages.segmenting import ranges

# The queue -------------------------------------------------------------------------------------------------


class WaitingSerializer(ModelSerializer[Task]):
    """A task that waits for a reviewer. `task` is its public number, `id` the one that it was imported with."""

    task = serializers.IntegerField(source="public_id")
    id = serializers.CharField(source="external_id")
    state = serializers.CharField()
    because = serializers.CharField(source="review_reason")
    spread = serializers.IntegerField(source="review_spread")
    raters = serializers.IntegerField()
    beginning = serializers.CharField(help_text="of the turn that was answered")

    class Meta:
        model = Task
        fields = ["task", "id", "state", "because", "spread", "raters", "beginning"]


class QueuePages(CursorPages):
    """Pages that lead forwards only, the widest spread first: tasks that are settled meanwhile leave their places."""

    def rows_of_page(self, queryset: Any, request: Request, view: Any) -> list[Any]:
        size = self.get_page_size(request) or self.page_size
        cursor = request.query_params.get(self.cursor_query_param)
        place = QueueKey.read(cursor) if cursor else None
        if cursor and place is None:
            raise NotFound(self.invalid_cursor_message)
        # One row more says whether there is a next page, without a count.
        rows = queue_from(queryset, after=place, size=size + 1)
        self.address, self.last = request.build_absolute_uri(), rows[size - 1] if len(rows) > size else None
        return rows[:size]

    def get_next_link(self) -> str | None:
        if self.last is None:
            return None
        return str(replace_query_param(self.address, self.cursor_query_param, str(QueueKey.of(self.last))))

    def get_previous_link(self) -> str | None:
        return None


class QueueFilter(filters.FilterSet):  # type: ignore[misc]
    because = filters.ChoiceFilter(field_name="review_reason", choices=Task.Review.choices)

    class Meta:
        model = Task
        fields = ["because"]


class Queue(generics.ListAPIView[Task]):
    """Lists tasks that wait for a reviewer.

    They are dropped, disputed on safety, set aside, have a rating that is unlikely to a model, or raters have found the
    guidelines silent about them.
    """

    serializer_class = WaitingSerializer
    queryset = Task.objects.none()
    filterset_class = QueueFilter
    pagination_class = QueuePages

    def get_queryset(self) -> QuerySet[Any]:
        return with_beginnings(waiting(access.reviewed_project(access.user_of(self.request), self.kwargs["slug"])))


# One task --------------------------------------------------------------------------------------------------


class DecidedSerializer(KnownFields):
    response = ResponseIdField()
    scores = serializers.DictField(child=ScoreField(), required=False, default=dict)
    segments = SegmentsField(required=False, help_text="left out: those that the annotators agree on")


class AdjudicationSerializer(KnownFields):
    """An authoritative rating: scores for every response, a reason, and a preference or a ranking.

    `preference` compares two responses, relative to the order of the task's responses; three or more are ranked.
    """

    ratings = DecidedSerializer(many=True)
    preference = WholeNumberField(required=False, allow_null=True)
    ranking = RankingField(required=False, allow_null=True)
    reason = serializers.ChoiceField(choices=Adjudication.Reason.choices)
    comment = serializers.CharField(required=False, allow_blank=True, default="", max_length=LONGEST_NOTE)
    example = serializers.BooleanField(
        required=False, default=False, help_text="whether raters are shown it beside its levels, with the comment"
    )
    based_on = WholeNumberField(
        required=False,
        min_value=0,
        help_text="the id of the authoritative rating that it replaces; 0: of none; absent: of any",
    )

    def validate_ratings(self, ratings: list[dict[str, Any]]) -> list[dict[str, Any]]:
        if len({rating["response"] for rating in ratings}) != len(ratings):
            raise serializers.ValidationError("A response is rated twice.")
        return ratings

    def decision(self) -> dict[str, Any]:
        """Returns the validated decision as the keyword arguments of `adjudicate`."""
        data = dict(self.validated_data)
        ratings, seen = data.pop("ratings"), data.pop("based_on", None)
        segments = {rating["response"]: rating["segments"] for rating in ratings if "segments" in rating}
        scores = {rating["response"]: rating["scores"] for rating in ratings}
        return data | {"scores": scores, "segments": segments, "seen": seen, "is_example": data.pop("example")}


class StoredAdjudicationSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField(help_text="to be sent as `based_on` with a rating that replaces it")
    ratings = DecidedSerializer(many=True)
    preference = serializers.IntegerField(allow_null=True)
    ranking = RankingField(allow_null=True)
    reason = serializers.CharField()
    comment = serializers.CharField()
    example = serializers.BooleanField()
    by = serializers.CharField()
    made_at = serializers.DateTimeField()


class StoredVerdictSerializer(serializers.Serializer[Any]):
    assignment = serializers.IntegerField()
    decision = serializers.CharField()
    comment = serializers.CharField()
    by = serializers.CharField()
    made_at = serializers.DateTimeField()


class UnlikelySerializer(serializers.Serializer[Any]):
    """A score that surprises a model which has not learnt from the task, with the score that it expects."""

    response = serializers.IntegerField()
    attribute = serializers.CharField()
    given = serializers.IntegerField()
    expected = serializers.FloatField()


class RaterSerializer(serializers.Serializer[Any]):
    """One submission, with a number in place of the annotator's name. `kept` says that its scores make the label."""

    number = serializers.IntegerField()
    assignment = serializers.IntegerField()
    counts = serializers.BooleanField()
    kept = serializers.BooleanField()
    ratings = RatingOutSerializer(many=True)
    preference = serializers.IntegerField(allow_null=True)
    ranking = RankingField(allow_null=True)
    justification = serializers.CharField()
    domain = serializers.CharField()
    language = serializers.CharField()
    active_seconds = serializers.FloatField(allow_null=True)
    verdict = StoredVerdictSerializer(allow_null=True)
    unlikely = UnlikelySerializer(many=True)


class OpenGapSerializer(serializers.Serializer[Any]):
    """A question that a rater has found the guidelines silent about; without an attribute, the task as a whole."""

    id = serializers.IntegerField()
    attribute = serializers.CharField()


class AnsweredSerializer(KnownFields):
    newest = WholeNumberField(min_value=0, help_text="the largest id that you have read; later gaps stay open")


class ClosedSerializer(serializers.Serializer[Any]):
    closed = serializers.IntegerField()


class ReviewedSerializer(serializers.Serializer[Any]):
    """All ratings of a task side by side, without the names of annotators and models."""

    task = serializers.IntegerField()
    id = serializers.CharField()
    state = serializers.CharField()
    because = serializers.CharField()
    conversation = MessageSerializer(many=True)
    responses = LeasedResponseSerializer(many=True)
    guideline_gaps = OpenGapSerializer(many=True)
    raters = RaterSerializer(many=True)
    adjudication = StoredAdjudicationSerializer(allow_null=True)


class OneReviewed(APIView):
    """Returns a task with all its ratings, for reviewers and managers."""

    @extend_schema(responses=ReviewedSerializer)
    def get(self, request: Request, task_id: int) -> Response:
        user = access.user_of(request)
        task = access.reviewed_task(user, task_id)
        ratings = reviewed(task, task.project, by=user)
        answer = {
            "task": task.public_id,
            "id": task.external_id,
            "state": task.state,
            "because": task.review_reason,
            "conversation": task.conversation,
            "responses": [_response(sheet.response) for sheet in ratings.sheets],
            "guideline_gaps": [{"id": gap.pk, "attribute": gap.attribute} for gap in ratings.gaps],
            "raters": [_rater(rater) for rater in ratings.raters],
            "adjudication": _adjudication(ratings.adjudication) if ratings.adjudication else None,
        }
        return Response(answer)


def _response(response: TaskResponse) -> dict[str, Any]:
    cut = {"segments": shown_segments(ranges(response.segments))} if response.segments else {}
    return {"id": response.public_id, "text": response.text} | cut


def _rater(rater: SheetRater) -> dict[str, Any]:
    annotation = rater.annotation
    return {
        "number": rater.number,
        "assignment": annotation.assignment_id,
        "counts": rater.counts,
        "kept": rater.kept,
        "ratings": [shown_rating(rating, annotation.aspects) for rating in rater.ratings.values()],
        "preference": annotation.preference,
        "ranking": _ranking(annotation.ranking),
        "justification": annotation.justification,
        "domain": annotation.domain,
        "language": annotation.language,
        "active_seconds": annotation.active_seconds,
        "verdict": _verdict(rater.verdict) if rater.verdict else None,
        "unlikely": [
            rating | {"response": response_number(rating["response"])} for rating in map(dict, rater.unlikely)
        ],
    }


def _adjudication(adjudication: Adjudication) -> dict[str, Any]:
    return {
        "id": adjudication.pk,
        # Keys of a JSON object are text: the ids of the responses are to be numbers again.
        "ratings": [_decided(adjudication, response) for response in adjudication.scores],
        "preference": adjudication.preference,
        "ranking": _ranking(adjudication.ranking),
        "reason": adjudication.reason,
        "example": adjudication.is_example,
    } | _signature(adjudication)


def _decided(adjudication: Adjudication, response: str) -> dict[str, Any]:
    decided = {"response": response_number(int(response)), "scores": adjudication.scores[response]}
    if response not in adjudication.segments:
        return decided
    return decided | {"segments": shown_scores(adjudication.aspects, adjudication.segments[response])}


def _ranking(tiers: Any) -> list[list[int]] | None:
    """Returns a stored ranking with the responses' public numbers."""
    return tiers and [[response_number(response) for response in tier] for tier in tiers]


def _verdict(verdict: Verdict) -> dict[str, Any]:
    return {"assignment": verdict.assignment_id, "decision": verdict.decision} | _signature(verdict)


def _signature(decision: Adjudication | Verdict) -> dict[str, Any]:
    return {"comment": decision.comment, "by": decision.by.username, "made_at": decision.made_at}


class AnswerGaps(APIView):
    """Says that the guidelines answer what raters found them silent about; the task leaves the queue."""

    @extend_schema(request=AnsweredSerializer, responses=ClosedSerializer)
    def post(self, request: Request, task_id: int) -> Response:
        user = access.user_of(request)
        task = access.reviewed_task(user, task_id)
        seen = validated(AnsweredSerializer(data=request.data))["newest"]
        return Response({"closed": close_gaps(task.pk, by=user, seen=seen, now=database_now())})


class AdjudicateTask(APIView):
    """Sets or withdraws the authoritative rating of a complete task. The annotators' ratings stay beside it."""

    @extend_schema(
        request=AdjudicationSerializer,
        responses=StoredAdjudicationSerializer,
        examples=[
            OpenApiExample(
                "A preference",
                {
                    "ratings": [
                        {"response": 1323585687578924, "scores": {"helpfulness": 4}},
                        {"response": 860591582769539, "scores": {"helpfulness": 0}},
                    ],
                    "preference": -2,
                    "reason": "guideline_gap",
                    "comment": "Only primes answer the question.",
                },
                request_only=True,
            )
        ],
    )
    def put(self, request: Request, task_id: int) -> Response:
        user = access.user_of(request)
        task = access.reviewed_task(user, task_id)
        serializer = AdjudicationSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        adjudication = adjudicate(task.pk, **serializer.decision(), by=user, now=database_now())
        return Response(_adjudication(adjudication))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, task_id: int) -> Response:
        user = access.user_of(request)
        withdraw(access.reviewed_task(user, task_id).pk, by=user, now=database_now())
        return Response(status=status.HTTP_204_NO_CONTENT)


class VerdictSerializer(KnownFields):
    """A decision on an annotation. A rejection needs a comment, which the annotator reads."""

    decision = serializers.ChoiceField(choices=Verdict.Decision.choices)
    comment = serializers.CharField(required=False, allow_blank=True, default="", max_length=LONGEST_NOTE)


class VerdictOnAssignment(APIView):
    """Accepts or rejects an annotation. A rejected one leaves the consensus, and its slot becomes free again."""

    @extend_schema(request=VerdictSerializer, responses=StoredVerdictSerializer)
    def post(self, request: Request, assignment_id: int) -> Response:
        user = access.user_of(request)
        assignment = access.reviewed_assignment(user, assignment_id)
        data = validated(VerdictSerializer(data=request.data))
        verdict = judge(assignment.pk, **data, by=user, now=database_now())
        return Response(_verdict(verdict))
