"""Excluding and readmitting annotators over REST."""

import pytest
from rest_framework.test import APIClient

from annotator.models import Assignment, Exclusion, Project, Task, User
from tests.builders import imported, make_project, make_task, pseudonym, rate, ratings_row
from tests.conftest import As, Cast

ADDRESS = "/api/v1/projects/talk/exclusions/"


@pytest.fixture
def client(project: Project, cast: Cast, as_user: As) -> APIClient:
    """carol's, in a project with one task that is complete."""
    make_task(project)
    for user in cast.annotators:
        rate(project, user)
    return as_user(cast.carol)


def test_a_dry_run_counts_and_changes_nothing(client: APIClient, cast: Cast, project: Project) -> None:
    answer = client.post(f"{ADDRESS}?dry_run=1", {"annotator": pseudonym(cast.bob, project)})
    assert (answer.status_code, answer.json()) == (
        200,
        {
            "annotations": 1,
            "tasks": 1,
            "tasks_losing_labels": 1,
            "tasks_reopened": 1,
            "labels_changed": 0,
            "estimated": False,
        },
    )
    assert not Exclusion.objects.exists()


def test_an_exclusion_is_made_listed_and_lifted(client: APIClient, cast: Cast, project: Project) -> None:
    made = client.post(ADDRESS, {"annotator": pseudonym(cast.bob, project), "reason": "Clicks without reading."})
    assert (made.status_code, made.json()["by"]) == (201, "carol")
    assert Task.objects.get().state == Task.State.OPEN
    assert client.get(ADDRESS).json()["results"] == [made.json()]
    back = f"{ADDRESS}?annotator={pseudonym(cast.bob, project)}"
    assert client.delete(f"{back}&dry_run=1").json()["annotations"] == 1
    assert client.delete(back).status_code == 204
    assert (Task.objects.get().state, Exclusion.objects.count()) == (Task.State.COMPLETE, 0)


def test_a_user_name_will_do_too(client: APIClient, cast: Cast, project: Project) -> None:
    assert client.post(ADDRESS, {"annotator": "bob", "reason": "Clicks."}).json()["annotator"] == pseudonym(
        cast.bob, project
    )
    assert client.delete(f"{ADDRESS}?annotator=bob").status_code == 204


def test_a_pseudonym_goes_before_a_user_name(client: APIClient, cast: Cast, project: Project) -> None:
    User.objects.filter(pk=cast.alice.pk).update(username=pseudonym(cast.bob, project))
    client.post(ADDRESS, {"annotator": pseudonym(cast.bob, project), "reason": "Clicks."})
    assert Exclusion.objects.get().annotator == cast.bob


def test_much_of_it_goes_on_in_the_background(
    client: APIClient, cast: Cast, monkeypatch: pytest.MonkeyPatch, project: Project
) -> None:
    monkeypatch.setattr("annotator.stages.review.exclusions.SYNC_LIMIT", 0)
    monkeypatch.setattr("annotator.infrastructure.background.messages.app.send_task", lambda *task: None)
    assert client.post(ADDRESS, {"annotator": pseudonym(cast.bob, project), "reason": "Clicks."}).status_code == 202
    assert Assignment.objects.get(annotator=cast.bob).counts


def test_why_and_who_are_asked_for(client: APIClient, cast: Cast, project: Project) -> None:
    assert list(client.post(ADDRESS, {"annotator": pseudonym(cast.bob, project)}).json()["errors"]) == ["reason"]
    assert list(client.post(ADDRESS, {"reason": "Clicks."}).json()["errors"]) == ["annotator"]
    assert list(client.delete(ADDRESS).json()["errors"]) == ["annotator"]
    assert client.delete(f"{ADDRESS}?annotator=%00").status_code == 400


def test_strangers_to_the_project_are_unknown(client: APIClient, cast: Cast, project: Project) -> None:
    assert client.post(ADDRESS, {"annotator": pseudonym(cast.dave, project), "reason": "Clicks."}).status_code == 404
    said = client.post(ADDRESS, {"annotator": "r-none", "reason": "Clicks."}).json()
    assert (said["code"], said["detail"]) == (
        "not_found",
        "Nobody in this project has the pseudonym or user name 'r-none'.",
    )


def test_imported_raters_are_known(project: Project, client: APIClient) -> None:
    imported(project, ratings_row("p", "a", [1, 4, 4]))
    imported(make_project("other"), ratings_row("p", "a", [1, 4, 4]))
    rater = User.objects.get(imported_places__place="rater-1", imported_places__project=project)
    assert client.post(ADDRESS, {"annotator": pseudonym(rater, project), "reason": "Far off."}).status_code == 201
