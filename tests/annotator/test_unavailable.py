"""What people and scripts are told while the database restarts."""

import pytest
from django.db import OperationalError
from django.test import Client
from rest_framework.test import APIClient

from annotator import assignment
from annotator.models import Project
from tests.conftest import Cast


@pytest.fixture
def database_away(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_args: object, **_kwargs: object) -> None:
        raise OperationalError("terminating connection due to administrator command")

    monkeypatch.setattr(assignment, "claim", gone)


@pytest.mark.usefixtures("database_away")
def test_a_script_is_told_to_come_back(project: Project, cast: Cast) -> None:
    client = APIClient()
    client.force_authenticate(cast.alice)
    answer = client.post(f"/api/v1/projects/{project.slug}/next/")
    assert (answer.status_code, answer.json()["code"], answer["Retry-After"]) == (503, "database_away", "2")


@pytest.mark.usefixtures("database_away")
def test_a_page_says_that_nothing_is_lost(project: Project, cast: Cast, client: Client) -> None:
    client.force_login(cast.alice)
    answer = client.get(f"/projects/{project.slug}/annotate/")
    assert answer.status_code == 503
    assert "What you had saved is kept" in answer.content.decode()
