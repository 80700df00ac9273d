"""Serializers look through a model once for each language, and give every answer fields of its own."""

import pytest
from django.utils import translation

from annotator.api.projects import AnnotatorsProjectSerializer, ProjectSerializer


def test_a_second_answer_does_not_look_through_the_model_again(monkeypatch: pytest.MonkeyPatch) -> None:
    first = [*AnnotatorsProjectSerializer().fields]
    monkeypatch.setattr("rest_framework.serializers.get_field_kwargs", None)
    assert [*AnnotatorsProjectSerializer().fields] == first


def test_labels_are_in_the_reader_s_language() -> None:
    labels = []
    for language in ("en", "de", "en"):
        with translation.override(language):
            labels.append(str(ProjectSerializer().fields["base_annotators"].label))
    assert labels[0] == labels[2] != labels[1]


def test_answers_share_no_field() -> None:
    one, other = ProjectSerializer().fields, ProjectSerializer().fields
    assert {id(field) for field in one.values()} & {id(field) for field in other.values()} == set()
