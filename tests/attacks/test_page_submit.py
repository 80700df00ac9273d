"""A page's submission costs what REST's does: stored and claimed in one commit."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from annotator.models import Annotation, Assignment, Project
from tests.annotator.pages.test_history import form
from tests.builders import claimed, make_task
from tests.conftest import Cast

MOST_QUERIES = 23
"""REST's 13 of storing and claiming, and nine that make a page: session, user, form, membership, the next draft."""


@pytest.mark.django_db(transaction=True)
def test_a_page_s_submission_and_the_next_task_are_one_commit(client: Client, project: Project, cast: Cast) -> None:
    for name in ("one", "two", "three"):
        make_task(project, name)
    client.force_login(cast.alice)
    for _ in range(2):  # the first fills what a process keeps
        held = claimed(project, cast.alice)
        filled = form(held.task, 3)
        with CaptureQueriesContext(connection) as queries:
            answer = client.post(f"/assignments/{held.pk}/submit/", filled, headers={"HX-Request": "true"})
        assert answer.status_code == 200
    said = [query["sql"].split()[0] for query in queries]
    assert said.count("COMMIT") == 1
    assert len(said) <= MOST_QUERIES
    assert Annotation.objects.count() == 2
    assert Assignment.objects.get(state=Assignment.State.LEASED).annotator == cast.alice


def test_a_page_refuses_seconds_that_no_clock_has_measured(client: Client, project: Project, cast: Cast) -> None:
    make_task(project)
    client.force_login(cast.alice)
    held = claimed(project, cast.alice)
    answer = client.post(f"/assignments/{held.pk}/submit/", form(held.task, 3) | {"active_seconds": "1e39"})
    assert answer.status_code == 422
    assert not Annotation.objects.exists()
