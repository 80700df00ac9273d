"""Serializers of the models' rows, whose fields are described once instead of at every call."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, TypeVar

from django.db import models
from django.utils.translation import get_language
from rest_framework import serializers

M = TypeVar("M", bound=models.Model)
Described = tuple[type[Any], dict[str, Any]]


class ModelSerializer(serializers.ModelSerializer[M]):
    """REST framework's own looks through the model for every answer, which is a quarter of the time of a small one."""

    _described: dict[tuple[str, str | None], Described]
    """How each of the model's fields is shown in a language: labels differ where there are translations."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls._described = {}

    def build_standard_field(self, field_name: str, model_field: models.Field[Any, Any]) -> Described:
        key = field_name, get_language()
        if key not in self._described:
            self._described[key] = super().build_standard_field(field_name, model_field)
        field, options = self._described[key]
        # Whoever makes the field adds to the options, and the field of a list's items belongs to one list only.
        return field, {name: deepcopy(value) if name == "child" else value for name, value in options.items()}
