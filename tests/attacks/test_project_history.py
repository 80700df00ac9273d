"""What is kept of a project is the project's, whatever its slug was and whoever has that slug now."""

from typing import Any

from django.test import Client
from rest_framework.test import APIClient

from annotator.models import Annotation, Project, User
from tests.builders import imported, make_task, make_user, rate, ratings_row
from tests.conftest import As, Cast


def said(client: APIClient, slug: str) -> list[Any]:
    return list(client.get(f"/api/v1/projects/{slug}/audit/?page_size=100").json()["results"])


def deleted(client: APIClient, slug: str) -> int:
    client.post(f"/api/v1/projects/{slug}/archive/")
    return int(client.delete(f"/api/v1/projects/{slug}/?confirm={slug}").status_code)


def test_a_later_project_of_the_same_slug_reads_nothing_of_the_old_one(
    project: Project, cast: Cast, carol: APIClient, as_user: As, client: Client
) -> None:
    carol.post("/api/v1/projects/talk/members/", {"username": "dave", "role": "reviewer"})
    assert deleted(carol, "talk") == 204
    rival = make_user("rival", is_staff=True)
    assert as_user(rival).post("/api/v1/projects/", {"slug": "talk", "name": "Mine"}).status_code == 201
    assert [entry["action"] for entry in said(as_user(rival), "talk")] == ["project.created"]
    client.force_login(rival)
    assert "member dave" not in client.get("/admin/annotator/auditentry/").content.decode()


def test_a_renamed_project_keeps_its_history(project: Project, carol: APIClient, as_user: As) -> None:
    carol.patch("/api/v1/projects/talk/", {"keep": 2})
    assert carol.patch("/api/v1/projects/talk/", {"slug": "chat"}).json()["slug"] == "chat"
    rival = make_user("rival", is_staff=True)
    as_user(rival).post("/api/v1/projects/", {"slug": "talk", "name": "Mine"})
    assert [list(entry["details"]["changed"]) for entry in said(carol, "chat")] == [["slug"], ["keep"]]
    assert [entry["action"] for entry in said(as_user(rival), "talk")] == ["project.created"]


def test_the_same_ratings_after_a_rename_are_the_same(project: Project, carol: APIClient) -> None:
    rows = [ratings_row("p", "a", [1, 4, 4]), ratings_row("p", "b", [2, 2, 3])]
    assert imported(project, *rows).created == 1
    before = Annotation.objects.count()
    carol.patch("/api/v1/projects/talk/", {"slug": "chat"})
    again = imported(Project.objects.get(), *rows)
    assert (again.created, again.rejected, Annotation.objects.count()) == (0, [], before)


def test_imported_raters_of_a_later_project_are_others(project: Project, cast: Cast, carol: APIClient) -> None:
    imported(project, ratings_row("p", "a", [1, 4, 4]))
    carol.patch("/api/v1/projects/talk/", {"slug": "chat"})
    second = Project.objects.create(slug="talk", name="Talk", rubric=project.rubric)
    imported(second, ratings_row("p", "a", [1, 4, 4]))
    raters = User.objects.filter(assignments__task__project=project)
    assert not raters.filter(assignments__task__project=second).exists()


def test_nobody_gets_ratings_by_taking_a_raters_name(project: Project, carol: APIClient) -> None:
    for name in (f"imported.{project.pk}.rater-1", "imported.talk.rater-1"):
        carol.post("/api/v1/projects/talk/members/", {"username": name, "password": "tall order 98 x"})
    imported(project, ratings_row("p", "a", [1, 4, 4]))
    assert not Annotation.objects.filter(assignment__annotator__is_active=True).exists()


def test_the_work_is_there_under_the_new_slug(project: Project, cast: Cast, carol: APIClient) -> None:
    make_task(project, "one")
    rate(project, cast.alice)
    carol.patch("/api/v1/projects/talk/", {"slug": "chat"})
    assert carol.get("/api/v1/projects/talk/").status_code == 404
    assert len(carol.get("/api/v1/projects/chat/annotations/").json()["results"]) == 1
