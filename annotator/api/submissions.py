"""What annotators send: finished ratings, skips, reports."""

from typing import Any

from rest_framework import serializers

from annotator.annotation import ResponseRating, Submission
from annotator.api.fields import (
    KnownFields,
    NumberField,
    OptionalCategoryField,
    RankingField,
    ResponseIdField,
    ScoreField,
    WholeNumberField,
)
from annotator.db.storable_text import LONGEST_JUSTIFICATION, LONGEST_NOTE
from annotator.models import LONGEST_ACTIVE_SECONDS, SkipReason, UnsafeCategory

MOST_CHECKS = 100


class RatingSerializer(KnownFields):
    response = ResponseIdField()
    scores = serializers.DictField(child=ScoreField())
    checks = serializers.ListField(child=serializers.CharField(max_length=100), required=False, max_length=MOST_CHECKS)
    confidence = WholeNumberField(min_value=0, max_value=2, required=False, allow_null=True)
    safe = serializers.BooleanField(required=False, allow_null=True)
    unsafe_category = OptionalCategoryField()


class SubmissionSerializer(KnownFields):
    """A finished rating. `preference` is relative to the order of the leased task's responses.

    A project that asks for a preference wants `preference` of two responses, and `ranking` of three or more: `asks` of
    the lease says which. A ranking names each of the task's responses once.
    """

    ratings = RatingSerializer(many=True)
    preference = WholeNumberField(required=False, allow_null=True)
    ranking = RankingField(required=False, allow_null=True)
    justification = serializers.CharField(
        required=False, allow_blank=True, trim_whitespace=False, max_length=LONGEST_JUSTIFICATION
    )
    active_seconds = NumberField(required=False, allow_null=True, min_value=0, max_value=LONGEST_ACTIVE_SECONDS)

    def validate_ratings(self, ratings: list[dict[str, Any]]) -> list[dict[str, Any]]:
        named = [rating["response"] for rating in ratings]
        if len(set(named)) != len(named):
            raise serializers.ValidationError("A response is rated twice.")
        return ratings


_SUBMISSIONS = SubmissionSerializer()
"""Checks them all: a serializer made anew copies every field, which takes longer than the checking."""


def submission_of(sent: Any) -> Submission:
    """What was sent as a finished rating; raises ValidationError."""
    data = _SUBMISSIONS.run_validation(sent)
    return Submission(
        ratings={rating["response"]: _response_rating(rating) for rating in data["ratings"]},
        preference=data.get("preference"),
        ranking=data.get("ranking"),
        justification=data.get("justification", ""),
        active_seconds=data.get("active_seconds"),
    )


def _response_rating(rating: dict[str, Any]) -> ResponseRating:
    return ResponseRating(
        scores=rating["scores"],
        checks=tuple(rating.get("checks", ())),
        confidence=rating.get("confidence"),
        safe=rating.get("safe"),
        unsafe_category=rating.get("unsafe_category", ""),
    )


class SkipSerializer(KnownFields):
    """With the reason `pii`, `quotes` may say what is personal: pieces of the task's texts, copied as they stand there.

    White space and upper case do not matter, and every occurrence is marked; a quote that is nowhere is refused.
    """

    reason = serializers.ChoiceField(choices=SkipReason.choices)
    note = serializers.CharField(required=False, allow_blank=True, default="", max_length=LONGEST_NOTE)
    quotes = serializers.ListField(child=serializers.CharField(max_length=2_000), required=False, max_length=100)


class ReportSerializer(KnownFields):
    category = serializers.ChoiceField(choices=UnsafeCategory.choices)
    note = serializers.CharField(required=False, allow_blank=True, default="", max_length=LONGEST_NOTE)
