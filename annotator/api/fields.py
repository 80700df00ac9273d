"""Reads what requests send, and converts nothing silently: values of another type and unknown fields are refused."""

from math import isfinite
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from annotator.infrastructure.limits import MOST_RESPONSES
from annotator.models import HIGHEST_SCORE, UnsafeCategory
from annotator.models.public_ids import response_number, response_of

LARGEST = 2**31 - 1
"""The largest number that a setting may be: what PostgreSQL's integer holds."""


def validated(serializer: serializers.BaseSerializer[Any]) -> Any:
    """Returns what a request has sent, as the serializer reads it. Raises ValidationError."""
    serializer.is_valid(raise_exception=True)
    return serializer.validated_data


class KnownFields(serializers.Serializer[Any]):
    """A serializer that refuses unknown fields: a misspelt one would silently leave a default in force."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, dict) and (unknown := sorted(set(data) - set(self.fields))):
            raise serializers.ValidationError({name: ["There is no such field."] for name in unknown})
        return super().to_internal_value(data)


class NumberField(serializers.FloatField):
    """A finite JSON number. Text is refused: "nan" would pass every bound, and no JSON answer could carry it."""

    def to_internal_value(self, data: Any) -> float:
        # In Python a truth value is an integer as well.
        if isinstance(data, bool) or not isinstance(data, int | float):
            self.fail("invalid")
        # An integer in JSON may be larger than any float.
        try:
            number = float(data)
        except OverflowError:
            self.fail("invalid")
        if not isfinite(number):
            self.fail("invalid")
        return number


class SettingsField(serializers.DictField):
    """The trainer's settings by name. The trainer checks their values; this field checks that they can be stored."""

    default_error_messages = {"range": "{name} is out of range."}

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        settings: dict[str, Any] = super().to_internal_value(data)
        for name, value in settings.items():
            if isinstance(value, int) and abs(value) > LARGEST:
                self.fail("range", name=name)
        return settings


class WholeNumberField(serializers.IntegerField):
    """An integer. Text and truth values are refused, so that a stored score is exactly what somebody chose."""

    default_error_messages = {"not_whole": "{value} is not a whole number."}

    def to_internal_value(self, data: Any) -> int:
        if type(data) is not int:
            self.fail("not_whole", value=repr(data))
        return super().to_internal_value(data)


class ResponseIdField(WholeNumberField):
    """A response: by its public number in JSON, by its primary key in Python."""

    default_error_messages = {"unknown": "There is no response {value}."}

    def to_internal_value(self, data: Any) -> int:
        number = super().to_internal_value(data)
        response = response_of(number)
        if response is None:
            self.fail("unknown", value=number)
        return response

    def to_representation(self, value: int) -> int:
        return response_number(value)


class RankingField(serializers.ListField):
    """Tiers of responses by public number, the best tier first; responses in one tier are equally good."""

    def __init__(self, **kwargs: Any) -> None:
        tier = serializers.ListField(child=ResponseIdField(), max_length=MOST_RESPONSES)
        help_text = "tiers of response ids, the best first; those of one tier are tied: [[12], [10, 11], [13]]"
        super().__init__(child=tier, max_length=MOST_RESPONSES, **({"help_text": help_text} | kwargs))


class ScoreField(WholeNumberField):
    """A level, counted from 0. How many its attribute has is checked where the rubric is known."""

    default_error_messages = dict.fromkeys(
        ("min_value", "max_value"), "Scores go from 0 to the attribute's levels - 1."
    )

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(min_value=0, max_value=HIGHEST_SCORE, **kwargs)


@extend_schema_field({"type": "string", "enum": [*UnsafeCategory.values, ""]})
class OptionalCategoryField(serializers.ChoiceField):
    """An unsafe category, empty where the response is safe or the project does not ask."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(choices=UnsafeCategory.choices, required=False, allow_blank=True, **kwargs)
