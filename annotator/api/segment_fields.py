"""Serializer fields of segments: their ranges and scores; and of characters of a response: comments and evidence.

Positions count Unicode characters (code points) from 0. The fields check types by hand: a submission may rate some
hundred segments, and a serializer for each would take longer than storing them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from annotator.infrastructure.limits import MOST_ATTRIBUTES, MOST_COMMENTS, MOST_EVIDENCE, MOST_SEGMENTS
from annotator.models import HIGHEST_SCORE
from annotator.stages.segmenting import Range


class SegmentSerializer(serializers.Serializer[Any]):
    """One segment of a response: the characters from `start` up to, not including, `end`."""

    index = serializers.IntegerField(help_text="from 0")
    start = serializers.IntegerField()
    end = serializers.IntegerField()


class RatedSegmentSerializer(serializers.Serializer[Any]):
    """The scores of one segment by aspect. null: the aspect does not apply to the segment."""

    index = serializers.IntegerField(min_value=0, max_value=MOST_SEGMENTS - 1, help_text="from 0")
    scores = serializers.DictField(
        child=serializers.IntegerField(min_value=0, max_value=HIGHEST_SCORE, allow_null=True)
    )


class CommentSerializer(serializers.Serializer[Any]):
    """A comment on the characters from `start` up to, not including, `end` of a response."""

    start = serializers.IntegerField(min_value=0)
    end = serializers.IntegerField(min_value=1)
    text = serializers.CharField()


class CheckedField(serializers.Field[Any, Any, Any, Any]):
    """A field that checks what is sent by hand, and shows what is stored as it is."""

    def to_representation(self, value: Any) -> Any:
        return value


@extend_schema_field(RatedSegmentSerializer(many=True))
class SegmentsField(CheckedField):
    """The scores of all segments of a response, as a tuple of mappings in the order of the segments."""

    default_error_messages = {
        "list": "Send a list of segments: [{{index, scores}}, ...].",
        "most": "A response has at most {most} segments.",
        "shape": "Segment {number} must be an object with index and scores, and nothing else.",
        "indexes": "Give each segment once, by its index from 0 to {last}.",
        "scores": (
            "The scores of segment {number} must be an object of at most {most} whole numbers by aspect, or null where "
            "an aspect does not apply."
        ),
    }

    def to_internal_value(self, data: Any) -> tuple[Mapping[str, int | None], ...]:
        if not isinstance(data, list):
            self.fail("list")
        if len(data) > MOST_SEGMENTS:
            self.fail("most", most=MOST_SEGMENTS)
        by_index: dict[int, Mapping[str, int | None]] = {}
        for number, segment in enumerate(data):
            if not isinstance(segment, dict) or segment.keys() != {"index", "scores"}:
                self.fail("shape", number=number)
            index, scores = segment["index"], segment["scores"]
            if type(index) is not int or index in by_index or not 0 <= index < len(data):
                self.fail("indexes", last=len(data) - 1)
            # Not isinstance: a truth value is an integer for Python.
            are_scores = isinstance(scores, dict) and all(one is None or type(one) is int for one in scores.values())
            if not are_scores or len(scores) > MOST_ATTRIBUTES:
                self.fail("scores", number=number, most=MOST_ATTRIBUTES)
            by_index[index] = scores
        return tuple(by_index[index] for index in range(len(data)))


@extend_schema_field({"type": "array", "items": {"type": "array", "items": {"type": "integer"}}})
class CutField(CheckedField):
    """An annotator's own segments of a response: pairs [start, end]. Whether they fit the text is checked later."""

    default_error_messages = {
        "pairs": "Send the segments as pairs of whole numbers: [[start, end], ...].",
        "most": "A response has at most {most} segments.",
    }

    def to_internal_value(self, data: Any) -> tuple[tuple[int, int], ...]:
        if not isinstance(data, list) or not all(_is_pair(item) for item in data[: MOST_SEGMENTS + 1]):
            self.fail("pairs")
        if len(data) > MOST_SEGMENTS:
            self.fail("most", most=MOST_SEGMENTS)
        return tuple((start, end) for start, end in data)


def _is_pair(item: Any) -> bool:
    return isinstance(item, list) and len(item) == 2 and all(type(value) is int for value in item)


@extend_schema_field(CommentSerializer(many=True))
class CommentsField(CheckedField):
    """Comments on characters of a response, as triples (start, end, text)."""

    default_error_messages = {
        "list": "Send a list of comments: [{{start, end, text}}, ...].",
        "most": "A response has at most {most} comments.",
        "shape": "Comment {number} must be an object with whole numbers start and end, and a text.",
    }

    def to_internal_value(self, data: Any) -> tuple[tuple[int, int, str], ...]:
        if not isinstance(data, list):
            self.fail("list")
        if len(data) > MOST_COMMENTS:
            self.fail("most", most=MOST_COMMENTS)
        for number, comment in enumerate(data):
            if not isinstance(comment, dict) or comment.keys() != {"start", "end", "text"}:
                self.fail("shape", number=number)
            if not _is_pair([comment["start"], comment["end"]]) or not isinstance(comment["text"], str):
                self.fail("shape", number=number)
        return tuple((comment["start"], comment["end"], comment["text"]) for comment in data)


class EvidenceSerializer(serializers.Serializer[Any]):
    attribute = serializers.CharField()
    start = serializers.IntegerField()
    end = serializers.IntegerField()
    note = serializers.CharField()


@extend_schema_field(EvidenceSerializer(many=True))
class EvidenceField(CheckedField):
    """The characters for which attributes have their scores, as tuples (attribute, start, end, note)."""

    default_error_messages = {
        "list": "Send a list of pieces of evidence: [{{attribute, start, end, note}}, ...].",
        "most": "A response has at most {most} pieces of evidence.",
        "shape": "Evidence {number} must be an object with an attribute, whole numbers start and end, and any note.",
    }

    def to_internal_value(self, data: Any) -> tuple[tuple[str, int, int, str], ...]:
        if not isinstance(data, list):
            self.fail("list")
        if len(data) > MOST_EVIDENCE:
            self.fail("most", most=MOST_EVIDENCE)
        for number, one in enumerate(data):
            if not isinstance(one, dict) or one.keys() - {"note"} != {"attribute", "start", "end"}:
                self.fail("shape", number=number)
            texts = (one["attribute"], one.get("note", ""))
            if not _is_pair([one["start"], one["end"]]) or not all(isinstance(text, str) for text in texts):
                self.fail("shape", number=number)
        return tuple((one["attribute"], one["start"], one["end"], one.get("note", "").strip()) for one in data)


def shown_evidence(evidence: Sequence[Sequence[Any]]) -> list[dict[str, Any]]:
    """Returns stored evidence in the form in which it is sent."""
    return [dict(zip(("attribute", "start", "end", "note"), one, strict=True)) for one in evidence]


def shown_segments(cut: Sequence[Range]) -> list[dict[str, int]]:
    """Returns a response's segments as annotators get them."""
    return [{"index": index, "start": start, "end": end} for index, (start, end) in enumerate(cut)]


def shown_scores(aspects: Sequence[str], rows: Sequence[Sequence[int | None]] | None) -> list[dict[str, Any]]:
    """Returns stored scores [segments][aspects] in the form in which they are sent."""
    return [{"index": index, "scores": dict(zip(aspects, row, strict=True))} for index, row in enumerate(rows or ())]


def shown_comments(comments: Sequence[Sequence[Any]]) -> list[dict[str, Any]]:
    """Returns stored comments in the form in which they are sent."""
    return [{"start": start, "end": end, "text": text} for start, end, text in comments]
