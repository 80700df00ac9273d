"""Which settings a project may have."""

from typing import Any

import pytest

from annotator.managing import project_settings
from annotator.managing.settings_check import InvalidProject, check
from annotator.models import Project, Rubric
from tests.builders import make_project


def errors(project: Project | None, **changes: Any) -> dict[str, list[str]]:
    try:
        check(project, changes)
    except InvalidProject as invalid:
        return dict(invalid.errors)
    return {}


@pytest.fixture
def rubric(db: None) -> Rubric:
    made = Rubric.objects.create(key="tone", name="Tone")
    for position, key in enumerate(("warmth", "clarity")):
        made.attributes.create(key=key, name=key, description="", levels=["a"] * 5, position=position)
    return made


def test_what_is_broken_is_named(project: Project) -> None:
    faults = errors(project, keep=9, escalate_above=7, training_config={"epochs": "many"})
    assert set(faults) == {"keep", "escalate_above", "training_config"}


def test_a_consensus_that_would_take_minutes_is_refused(project: Project) -> None:
    assert list(errors(project, max_annotators=25, keep=12)) == ["keep"]
    assert errors(project, max_annotators=25, keep=3) == {}
    assert errors(project, max_annotators=25, keep=24) == {}


def test_an_old_setting_keeps_nobody_from_changing_another(project: Project) -> None:
    Project.objects.update(spread_attribute="tone")
    project.refresh_from_db()
    assert errors(project, name="New") == {}
    assert errors(project, name="New", spread_attribute="tone") == {}
    assert list(errors(project, spread_attribute="mood")) == ["spread_attribute"]


def test_a_taken_slug_is_refused(project: Project) -> None:
    make_project("other")
    assert list(errors(project, slug="other")) == ["slug"]
    assert errors(project, slug="talk") == {}


def test_the_spread_is_of_an_attribute_that_is_asked(project: Project, rubric: Rubric) -> None:
    assert errors(project, rubric=rubric)["spread_attribute"] == [
        "The rubric tone has no attribute helpfulness. It has warmth, clarity."
    ]
    assert errors(project, rubric=rubric, spread_attribute="clarity") == {}


def test_a_new_project_takes_what_follows_from_what_is_given(rubric: Rubric) -> None:
    made = project_settings.create({"slug": "new", "name": "New", "rubric": rubric, "base_annotators": 7})
    assert (made.spread_attribute, made.max_annotators, made.keep) == ("warmth", 7, 3)
    small = project_settings.create({"slug": "small", "name": "Small", "base_annotators": 1, "max_annotators": 1})
    assert small.keep == 1


def test_a_change_of_the_protocol_is_told(project: Project) -> None:
    assert project_settings.change(project, {"keep": 2})
    assert not project_settings.change(project, {"keep": 2, "name": "New"})
