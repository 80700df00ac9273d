"""How many tasks an annotator can still get."""

import pytest
from django.test import Client

from annotator.models import Membership, Project
from annotator.stages import annotation, assignment
from tests.builders import NOW, claimed, make_gold, make_task, rate
from tests.conftest import Cast

pytestmark = pytest.mark.django_db


def left(project: Project, cast: Cast) -> int:
    return assignment.tasks_left(project, cast.alice)


def test_tasks_that_one_has_had_are_not_left(project: Project, cast: Cast) -> None:
    for _ in range(5):
        make_task(project)
    assert left(project, cast) == 5
    rate(project, cast.alice)
    annotation.skip(claimed(project, cast.alice).pk, reason="other", now=NOW)
    claimed(project, cast.alice)
    assert left(project, cast) == 2


def test_what_others_have_begun_is_left_while_there_is_room(project: Project, cast: Cast) -> None:
    Project.objects.update(base_annotators=1)
    project.refresh_from_db()
    make_task(project)
    held = claimed(project, cast.bob)
    assert left(project, cast) == 0
    assignment.release(held.pk)
    assert left(project, cast) == 1


def test_a_quota_bounds_what_is_left(project: Project, cast: Cast) -> None:
    for _ in range(5):
        make_task(project)
    Project.objects.update(quota=3)
    project.refresh_from_db()
    rate(project, cast.alice)
    assert left(project, cast) == 1


def test_other_languages_are_not_left(project: Project, cast: Cast) -> None:
    make_task(project, lang="de")
    make_task(project)
    Membership.objects.filter(user=cast.alice).update(languages=["en"])
    assert left(project, cast) == 1


def test_gold_does_not_show_in_the_number(project: Project, cast: Cast) -> None:
    make_task(project)
    make_gold(project)
    assert left(project, cast) == 1


def test_many_are_counted_up_to_a_hundred(project: Project, cast: Cast, client: Client) -> None:
    for _ in range(103):
        make_task(project)
    assert left(project, cast) == 100
    client.force_login(cast.alice)
    assert "more than 99 more tasks for you" in client.get("/projects/talk/annotate/").content.decode()
