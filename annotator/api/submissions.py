"""Serializers of what annotators send: finished ratings, skips and reports."""

from functools import lru_cache
from itertools import chain
from typing import Any

from rest_framework import serializers

from annotator.api.fields import (
    KnownFields,
    NumberField,
    OptionalCategoryField,
    RankingField,
    ResponseIdField,
    ScoreField,
    WholeNumberField,
)
from annotator.api.segment_fields import CommentsField, CutField, EvidenceField, SegmentsField
from annotator.infrastructure.limits import LONGEST_EDIT, LONGEST_JUSTIFICATION, LONGEST_KEY, LONGEST_NOTE
from annotator.models import LONGEST_ACTIVE_SECONDS, SkipReason, UnsafeCategory
from annotator.models.rubric import LONGEST_DOMAIN
from annotator.reading.languages import LONGEST as LONGEST_LANGUAGE
from annotator.stages.annotation import ResponseRating, Submission

MOST_CHECKS = 100


def _written(longest: int, help_text: str) -> serializers.CharField:
    return serializers.CharField(
        required=False, allow_blank=True, trim_whitespace=False, max_length=longest, help_text=help_text
    )


class RatingSerializer(KnownFields):
    response = ResponseIdField()
    scores = serializers.DictField(child=ScoreField(), required=False, help_text="by attribute of whole responses")
    checks = serializers.ListField(child=serializers.CharField(max_length=100), required=False, max_length=MOST_CHECKS)
    confidence = WholeNumberField(min_value=0, max_value=2, required=False, allow_null=True)
    safe = serializers.BooleanField(required=False, allow_null=True)
    unsafe_category = OptionalCategoryField()
    feedback = _written(LONGEST_JUSTIFICATION, "what is good and bad about the response")
    edit = _written(LONGEST_EDIT, "a better version of the response")
    edit_summary = _written(LONGEST_JUSTIFICATION, "what the edit changes, and why")
    segments = SegmentsField(required=False, help_text="every segment of the response, where the rubric has aspects")
    cut = CutField(required=False, help_text="other segments than the response has, if the project allows that")
    comments = CommentsField(required=False)
    evidence = EvidenceField(required=False, help_text="the characters for which attributes have their scores")


class SubmissionSerializer(KnownFields):
    """A finished rating. `preference` is relative to the order of the leased task's responses.

    A project that asks for a preference wants `preference` for two responses and `ranking` for three or more; `asks` of
    the lease says which. A ranking names each of the task's responses once.
    """

    ratings = RatingSerializer(many=True)
    preference = WholeNumberField(required=False, allow_null=True)
    ranking = RankingField(required=False, allow_null=True)
    justification = _written(LONGEST_JUSTIFICATION, "why the responses compare as they do")
    domain = serializers.CharField(
        required=False, allow_blank=True, max_length=LONGEST_DOMAIN, help_text="one of the project's `domains`"
    )
    language = serializers.CharField(
        required=False, allow_blank=True, max_length=LONGEST_LANGUAGE, help_text="a code such as `en` or `pt-br`"
    )
    active_seconds = NumberField(required=False, allow_null=True, min_value=0, max_value=LONGEST_ACTIVE_SECONDS)

    def validate_ratings(self, ratings: list[dict[str, Any]]) -> list[dict[str, Any]]:
        named = [rating["response"] for rating in ratings]
        if len(set(named)) != len(named):
            raise serializers.ValidationError("A response is rated twice.")
        return ratings


@lru_cache(maxsize=64)
def _serializer(names: frozenset[str], in_ratings: frozenset[str]) -> SubmissionSerializer:
    """Returns a serializer for bodies that have these fields, of which each rating has some of `in_ratings`.

    It lacks the other optional fields, as REST framework raises an exception for each that a body leaves out. It is
    kept, as a new one would copy every field, which takes longer than the check.
    """
    serializer = SubmissionSerializer()
    ratings = serializer.fields["ratings"]
    assert isinstance(ratings, serializers.ListSerializer)
    assert isinstance(ratings.child, RatingSerializer)
    for fields, wanted in ((serializer.fields, names), (ratings.child.fields, in_ratings)):
        for name in [name for name, field in fields.items() if not field.required and name not in wanted]:
            del fields[name]
    return serializer


_FIELDS, _IN_RATINGS = frozenset(SubmissionSerializer().fields), frozenset(RatingSerializer().fields)


def _validated(body: Any) -> dict[str, Any]:
    names, in_ratings = _FIELDS, _IN_RATINGS
    if isinstance(body, dict):
        ratings = body.get("ratings")
        objects = [rating for rating in ratings if isinstance(rating, dict)] if isinstance(ratings, list) else []
        names, in_ratings = _FIELDS.intersection(body), _IN_RATINGS.intersection(chain.from_iterable(objects))
    data: dict[str, Any] = _serializer(names, in_ratings).run_validation(body)
    return data


def submission_of(body: Any) -> Submission:
    """Returns the finished rating in a request's body. Raises ValidationError."""
    data = _validated(body)
    ratings = {
        rating["response"]: ResponseRating(
            scores=rating.get("scores", {}),
            checks=tuple(rating.get("checks", ())),
            confidence=rating.get("confidence"),
            safe=rating.get("safe"),
            unsafe_category=rating.get("unsafe_category", ""),
            feedback=rating.get("feedback", ""),
            edit=rating.get("edit", ""),
            edit_summary=rating.get("edit_summary", ""),
            segments=rating.get("segments", ()),
            cut=rating.get("cut", ()),
            comments=rating.get("comments", ()),
            evidence=rating.get("evidence", ()),
        )
        for rating in data["ratings"]
    }
    return Submission(
        ratings=ratings,
        preference=data.get("preference"),
        ranking=data.get("ranking"),
        justification=data.get("justification", ""),
        domain=data.get("domain", ""),
        language=data.get("language", "").lower(),
        active_seconds=data.get("active_seconds"),
    )


class GapSerializer(KnownFields):
    attribute = serializers.CharField(
        required=False, allow_blank=True, default="", max_length=LONGEST_KEY, help_text="empty: the task as a whole"
    )


class SkipSerializer(KnownFields):
    """The reason for skipping a task. With `pii`, `quotes` may hold what is personal, copied from the task's texts.

    White space and upper case do not matter, and every occurrence is marked. A quote that stands nowhere is refused.
    """

    reason = serializers.ChoiceField(choices=SkipReason.choices)
    note = serializers.CharField(required=False, allow_blank=True, default="", max_length=LONGEST_NOTE)
    quotes = serializers.ListField(child=serializers.CharField(max_length=2_000), required=False, max_length=100)


class ReportSerializer(KnownFields):
    category = serializers.ChoiceField(choices=UnsafeCategory.choices)
    note = serializers.CharField(required=False, allow_blank=True, default="", max_length=LONGEST_NOTE)
