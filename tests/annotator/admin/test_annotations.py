"""Annotations in the admin: whom and what its search finds."""

import pytest
from django.test import Client
from django.urls import reverse

from annotator.models import Project
from tests.builders import make_member, make_project, make_task, rate
from tests.conftest import Cast

LIST = reverse("admin:annotator_annotation_changelist")


def names(client: Client, words: str) -> set[tuple[str, str]]:
    rows = client.get(LIST, {"q": words}).context["cl"].result_list
    return {(row.assignment.task.external_id, row.assignment.annotator.username) for row in rows}


@pytest.fixture
def ratings(project: Project, cast: Cast) -> None:
    """Alice's of `t-1` and bob's of `t-2`, and alice's of a `t-1` in a project of other people."""
    make_task(project, "t-1")
    rate(project, cast.alice)
    make_task(project, "t-2")
    rate(project, cast.alice)
    rate(project, cast.bob)
    elsewhere = make_project("elsewhere")
    make_task(elsewhere, "t-1")
    make_member(elsewhere, cast.alice)
    rate(elsewhere, cast.alice)


@pytest.mark.usefixtures("ratings")
def test_a_search_finds_the_annotations_of_a_task_by_its_whole_id(staff: Client) -> None:
    found = names(staff, " t-2 ")
    assert found
    assert {task for task, _ in found} == {"t-2"}
    assert names(staff, "t-") == set()


@pytest.mark.usefixtures("ratings")
def test_a_search_finds_the_annotations_of_people_by_a_part_of_their_names(staff: Client) -> None:
    assert names(staff, "LIC") == {("t-1", "alice"), ("t-2", "alice")}
    assert names(staff, "") > names(staff, "LIC")


@pytest.mark.usefixtures("ratings")
def test_a_search_finds_nothing_of_another_project(staff: Client) -> None:
    rows = staff.get(LIST, {"q": "t-1"}).context["cl"].result_list
    assert {row.assignment.task.project.slug for row in rows} == {"talk"}
