"""Serializers that several REST calls on tasks share: messages, responses and ratings."""

from collections.abc import Sequence
from typing import Any

from rest_framework import serializers

from annotator.api.segment_fields import (
    CommentSerializer,
    CutField,
    EvidenceSerializer,
    RatedSegmentSerializer,
    SegmentSerializer,
    shown_comments,
    shown_evidence,
    shown_scores,
)
from annotator.models import Rating
from annotator.models.public_ids import response_number


class MessageSerializer(serializers.Serializer[Any]):
    role = serializers.CharField()
    content = serializers.CharField()


class LeasedResponseSerializer(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    text = serializers.CharField()
    segments = SegmentSerializer(many=True, required=False, help_text="where the rubric has attributes of segments")


class StoredRatingSerializer(serializers.Serializer[Any]):
    response = serializers.IntegerField()
    scores = serializers.DictField(child=serializers.IntegerField())
    segments = RatedSegmentSerializer(many=True, required=False)


class RatingOutSerializer(StoredRatingSerializer):
    checks = serializers.ListField(child=serializers.CharField())
    confidence = serializers.IntegerField(allow_null=True)
    safe = serializers.BooleanField(allow_null=True)
    unsafe_category = serializers.CharField()
    feedback = serializers.CharField()
    edit = serializers.CharField()
    edit_summary = serializers.CharField()
    cut = CutField(required=False, help_text="the annotator's own segments")
    comments = CommentSerializer(many=True, required=False)
    evidence = EvidenceSerializer(many=True, required=False)


_ANSWERS = ("scores", "checks", "confidence", "safe", "unsafe_category", "feedback", "edit", "edit_summary")


def shown_rating(rating: Rating, aspects: Sequence[str]) -> dict[str, Any]:
    """Returns a stored rating as it is sent; fields of segments only where segments were rated, evidence if any."""
    shown = {"response": response_number(rating.response_id)} | {name: vars(rating)[name] for name in _ANSWERS}
    shown |= {"evidence": shown_evidence(rating.evidence)} if rating.evidence else {}
    if rating.segment_scores is None:
        return shown
    cut = {"cut": rating.cut} if rating.cut else {}
    segments = {"segments": shown_scores(aspects, rating.segment_scores)}
    return shown | segments | cut | {"comments": shown_comments(rating.comments)}
