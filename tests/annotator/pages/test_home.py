"""The page of one's projects."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from annotator.analysis import figures
from annotator.models import Project, ProjectFigures
from tests.builders import NOW, make_gold, make_member, make_project, make_task, make_user, rate
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
    (_, shown, _, _) = client.get("/").context["projects"][0]
    assert shown.own_done == 1


def test_practice_is_offered_where_there_is_some(project: Project, cast: Cast, client: Client) -> None:
    client.force_login(cast.alice)
    assert "Practice and test" not in client.get("/").content.decode()
    make_gold(project, use="stream")
    assert "Practice and test" not in client.get("/").content.decode()
    make_gold(project, use="practice")
    assert "Practice and test" in client.get("/").content.decode()


def test_it_counts_the_tasks_of_each_state(project: Project, cast: Cast, client: Client) -> None:
    Project.objects.update(base_annotators=1, max_annotators=1, keep=1)
    for name in ("one", "two", "three"):
        make_task(project, name)
    rate(Project.objects.get(), cast.alice)
    make_gold(project)
    client.force_login(cast.alice)
    progress = client.get("/").context["projects"][0][3]
    assert (progress.open, progress.complete, progress.total) == (2, 1, 3)


def test_a_large_project_is_not_counted_anew(project: Project, cast: Cast, client: Client) -> None:
    make_task(project)
    ProjectFigures.objects.create(
        project=project, as_of=timezone.now(), took=2, figures={"states": {"open": 70_000, "gold": 1}}
    )
    client.force_login(cast.alice)
    assert client.get("/").context["projects"][0][3].open == 70_000


def test_a_large_project_that_was_never_counted_is_counted_in_the_background(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "RECOUNT_INLINE_BELOW", 2)
    make_task(project, "one")
    figures.progress([project], now=NOW)
    assert not ProjectFigures.objects.exists()
    make_task(project, "two")
    assert figures.progress([project], now=NOW)[project.pk].open == 2
    assert ProjectFigures.objects.get().wanted_at == NOW


@pytest.mark.parametrize("address", ["/admin/", "/admin/annotator/project/", "/api/v1/projects/"])
def test_every_list_of_projects_shows_the_kept_counts(
    address: str, project: Project, admin_client: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    make_task(project)
    kept = {"states": {"open": 7_654_321}}
    ProjectFigures.objects.create(project=project, as_of=timezone.now(), took=2, figures=kept)
    with django_assert_max_num_queries(20):
        page = admin_client.get(address).content.decode()
    assert "7654321" in page.replace(",", "")


def test_a_superuser_sees_projects_of_others_without_rating_them(project: Project, client: Client) -> None:
    client.force_login(make_user("root", is_superuser=True))
    page = client.get("/").content.decode()
    assert "/projects/talk/settings/" in page
    assert "/projects/talk/annotate/" not in page


def test_annotators_see_no_tabs_and_no_archived_projects(project: Project, cast: Cast, client: Client) -> None:
    client.force_login(cast.alice)
    assert "/projects/talk/review/" not in client.get("/").content.decode()
    Project.objects.update(archived_at=timezone.now())
    page = client.get("/").content.decode()
    assert "archived" not in page
    assert "You are not in any project yet" in page
