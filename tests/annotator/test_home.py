"""The page of one's projects."""

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from annotator.models import Project
from tests.builders import make_member, make_project, make_task, rate
from tests.conftest import Cast


def test_the_home_page_asks_as_often_for_many_projects_as_for_few(cast: Cast, client: Client) -> None:
    client.force_login(cast.alice)
    counts = []
    for size in (2, 20):
        while cast.alice.memberships.count() < size:
            make_member(make_project(f"p{cast.alice.memberships.count()}"), cast.alice)
        with CaptureQueriesContext(connection) as asked:
            page = client.get("/").content.decode()
        assert page.count("Rated by you") == size
        counts.append(len(asked))
    assert counts[0] == counts[1]


def test_it_says_how_many_tasks_one_has_rated_oneself(project: Project, cast: Cast, client: Client) -> None:
    for user in (cast.alice, cast.bob):
        make_task(project, prompt=f"of {user}")
        rate(project, user)
    client.force_login(cast.alice)
    (_, shown, _) = client.get("/").context["projects"][0]
    assert shown.own_done == 1
