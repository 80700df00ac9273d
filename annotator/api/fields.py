"""Fields that take what was sent for what it is, and refuse what they do not know."""

from math import isfinite
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from annotator.importing.field_checks import MOST_RESPONSES
from annotator.models import UnsafeCategory
from annotator.models.public_ids import response_number, response_of

LARGEST = 2**31 - 1
"""Of a setting: what PostgreSQL's integer holds."""


class KnownFields(serializers.Serializer[Any]):
    """A field we do not know is a typing error that would silently leave a default in force."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, dict) and (unknown := sorted(set(data) - set(self.fields))):
            raise serializers.ValidationError({name: ["There is no such field."] for name in unknown})
        return super().to_internal_value(data)


class NumberField(serializers.FloatField):
    """A JSON number as it is. Text like "nan" would pass every bound, and no answer could carry it."""

    def to_internal_value(self, data: Any) -> float:
        if isinstance(data, bool) or not isinstance(data, int | float):
            self.fail("invalid")
        try:
            number = float(data)
        except OverflowError:
            self.fail("invalid")
        if not isfinite(number):
            self.fail("invalid")
        return number


class SettingsField(serializers.DictField):
    """The trainer's settings by name. What they may be is the trainer's to say; that they can be stored is ours."""

    default_error_messages = {"range": "{name} is out of range."}

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        settings: dict[str, Any] = super().to_internal_value(data)
        for name, value in settings.items():
            if isinstance(value, int) and abs(value) > LARGEST:
                self.fail("range", name=name)
        return settings


class WholeNumberField(serializers.IntegerField):
    """An integer as it is: no text and no truth value passes for one, as a stored score has to be what was chosen."""

    default_error_messages = {"not_whole": "{value} is not a whole number."}

    def to_internal_value(self, data: Any) -> int:
        if type(data) is not int:
            self.fail("not_whole", value=repr(data))
        return super().to_internal_value(data)


class ResponseIdField(WholeNumberField):
    """A response by its number outside; the row's own inside."""

    default_error_messages = {"unknown": "There is no response {value}."}

    def to_internal_value(self, data: Any) -> int:
        sent = super().to_internal_value(data)
        number = response_of(sent)
        if number is None:
            self.fail("unknown", value=sent)
        return number

    def to_representation(self, value: int) -> int:
        return response_number(value)


class RankingField(serializers.ListField):
    """Tiers of responses, the best first; a tier holds those that are equally good, by their numbers outside."""

    def __init__(self, **kwargs: Any) -> None:
        tier = serializers.ListField(child=ResponseIdField(), max_length=MOST_RESPONSES)
        help_text = "tiers of response ids, the best first; those of one tier are tied: [[12], [10, 11], [13]]"
        super().__init__(child=tier, max_length=MOST_RESPONSES, **({"help_text": help_text} | kwargs))


class ScoreField(WholeNumberField):
    default_error_messages = {"min_value": "Scores go from 0 to 4.", "max_value": "Scores go from 0 to 4."}

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(min_value=0, max_value=4, **kwargs)


@extend_schema_field({"type": "string", "enum": [*UnsafeCategory.values, ""]})
class OptionalCategoryField(serializers.ChoiceField):
    """Empty where the response is safe, or the project does not ask."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(choices=UnsafeCategory.choices, required=False, allow_blank=True, **kwargs)
