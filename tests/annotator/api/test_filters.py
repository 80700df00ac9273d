"""Each list takes filters and refuses what it does not know."""

from datetime import timedelta
from typing import Any

import pytest
from django.urls import URLPattern, URLResolver
from rest_framework.mixins import ListModelMixin
from rest_framework.test import APIClient

from annotator.infrastructure.db.clock import database_now
from annotator.managing import invitations
from annotator.models import (
    BulkChange,
    Exclusion,
    ExportJob,
    Guideline,
    ImportJob,
    ImportMapping,
    Invitation,
    Project,
    Release,
    Token,
    Webhook,
    WebhookDelivery,
)
from annotator.urls import rest
from rewards.models import Evaluation, EvaluationJob, RunState, Snapshot
from tests.annotator.api.test_roles import TABLE
from tests.builders import NOW, make_import, make_task, make_user, pseudonym, rate, task_row
from tests.conftest import Cast
from tests.rewards.api.test_api import make_model, make_run

ADDRESSES = {
    "projects": "projects/",
    "rubrics": "rubrics/",
    "tokens": "tokens/",
    "reward-models": "reward-models/",
    "policies": "policies/",
    "evaluations": "evaluations/",
    "deliveries": "projects/talk/webhooks/{webhook}/deliveries/",
}
HALVES = [half for half in rest if isinstance(half, URLResolver)]
LISTS = [
    pattern.name
    for half in HALVES
    for pattern in half.url_patterns
    if isinstance(pattern, URLPattern)
    and (pattern.name, "get") in TABLE
    and issubclass(vars(pattern.callback)["cls"], ListModelMixin)
]


def found(client: APIClient, path: str) -> int:
    answer = client.get(f"/api/v1/{path}")
    assert answer.status_code == 200, answer.content
    return len(answer.json()["results"])


@pytest.mark.parametrize("name", LISTS)
def test_a_list_refuses_an_unknown_parameter(project: Project, carol: APIClient, name: str) -> None:
    hook = Webhook.objects.create(project=project, url="https://a.example/", secret="s", created_at=database_now())
    address = ADDRESSES.get(name, f"projects/talk/{name}/").format(webhook=hook.pk)
    answer = carol.get(f"/api/v1/{address}?stat=done&page_size=3")
    assert answer.status_code == 400
    assert list(answer.json()["errors"]) == ["stat"]
    assert "cursor, " in answer.json()["detail"]


@pytest.mark.parametrize(
    ("path", "count"),
    [
        ("members/?role=manager", 1),
        ("members/?role=annotator", 3),
        ("members/?paused=true", 1),
        ("members/?paused=false", 3),
        ("members/?qualified=true", 0),
        ("guidelines/?version=1", 1),
        ("guidelines/?version=3", 0),
        ("webhooks/?active=false", 1),
        ("webhooks/?active=true", 0),
        ("imports/?taken_back=true", 0),
        ("imports/?taken_back=false", 1),
        ("imports/?since=2000-01-01", 1),
        ("imports/?until=2000-01-01", 0),
        ("import-jobs/?state=failed", 1),
        ("import-jobs/?state=done", 0),
        ("import-jobs/?dry_run=true", 0),
        ("import-mappings/?name=own", 1),
        ("import-mappings/?name=other", 0),
        ("export-jobs/?state=waiting&layout=wide&format=csv", 1),
        ("export-jobs/?layout=helpsteer2", 0),
        ("releases/?state=waiting", 1),
        ("releases/?state=done", 0),
        ("bulk-changes/?action=retire", 1),
        ("bulk-changes/?action=reopen", 0),
        ("snapshots/?content_hash=abc", 1),
        ("snapshots/?content_hash=abd", 0),
        ("training-runs/?state=failed", 1),
        ("training-runs/?state=promoted", 1),
        ("training-runs/?state=queued", 0),
        ("evaluation-jobs/?state=queued", 0),
        ("audit/?via=nonsense", 0),
        ("audit/?until=2000-01-01", 0),
    ],
)
def test_a_list_of_a_project_is_filtered(project: Project, cast: Cast, carol: APIClient, path: str, count: int) -> None:
    now = database_now()
    common: dict[str, Any] = {"project": project, "created_at": now}
    project.memberships.filter(user=cast.alice).update(paused_at=now)
    Guideline.objects.create(project=project, version=1, text="Rate.")
    Webhook.objects.create(**common, url="https://a.example/", secret="s", active=False)
    make_import(project, task_row("one"))
    ImportJob.objects.create(**common, state="failed", finished_at=now, file_hash="a", file_bytes=1)
    ImportMapping.objects.create(project=project, name="own", columns={}, changed_at=now)
    ExportJob.objects.create(**common, requested_by=cast.carol, layout="wide", format="csv")
    Release.objects.create(**common, number=1)
    BulkChange.objects.create(project=project, action="retire", made_at=now, by=cast.carol, chosen=1)
    Snapshot.objects.create(
        project=project, content_hash="abc", train_tasks=1, validation_tasks=1, labels=1, manifest={}, path="a"
    )
    make_run(project, RunState.FAILED)
    make_model(project)
    assert found(carol, f"projects/talk/{path}") == count


@pytest.mark.parametrize("name", ["members/?role", "import-jobs/?state", "releases/?state", "training-runs/?state"])
def test_a_value_that_no_row_can_have_is_refused(project: Project, carol: APIClient, name: str) -> None:
    assert carol.get(f"/api/v1/projects/talk/{name}=nonsense").status_code == 400


def test_annotations_are_found_by_person_task_and_time(project: Project, cast: Cast, carol: APIClient) -> None:
    make_task(project, "one")
    rate(project, cast.alice)
    rate(project, cast.bob)
    path, alice = "projects/talk/annotations/", pseudonym(cast.alice, project)
    assert found(carol, f"{path}?annotator={alice}") == 1
    assert found(carol, f"{path}?annotator=alice") == 0
    assert found(carol, f"{path}?task=one&counts=true&extra=false") == 2
    assert found(carol, f"{path}?task=two") == 0
    assert found(carol, f"{path}?counts=false") == found(carol, f"{path}?extra=true") == 0
    assert found(carol, f"{path}?since=2100-01-01") == found(carol, f"{path}?until=2000-01-01") == 0
    assert found(carol, f"{path}?since=2000-01-01&until=2100-01-01") == 2


def test_exclusions_are_found_by_person(project: Project, cast: Cast, carol: APIClient) -> None:
    Exclusion.objects.create(project=project, annotator=cast.bob, reason="Clicks.", by=cast.carol, made_at=NOW)
    path = "projects/talk/exclusions/?annotator="
    assert found(carol, path + pseudonym(cast.bob, project)) == 1
    assert found(carol, path + pseudonym(cast.alice, project)) == 0


def test_a_pseudonym_of_another_project_finds_nobody(project: Project, cast: Cast, carol: APIClient) -> None:
    make_task(project, "one")
    rate(project, cast.alice)
    other = Project.objects.create(slug="other", name="Other", rubric=project.rubric)
    assert found(carol, f"projects/talk/annotations/?annotator={pseudonym(cast.alice, other)}") == 0


def test_tokens_are_found_by_name(carol: APIClient, cast: Cast) -> None:
    Token.objects.create(cast.carol, name="script")
    Token.objects.create(cast.carol, name="other")
    assert found(carol, "tokens/?name=script") == 1


def test_deliveries_are_found_by_outcome(project: Project, carol: APIClient) -> None:
    hook = Webhook.objects.create(project=project, url="https://a.example/", secret="s", created_at=database_now())
    for state in ("failed", "failed", "delivered"):
        WebhookDelivery.objects.create(webhook=hook, event="task.completed", data={}, state=state)
    path = f"projects/talk/webhooks/{hook.pk}/deliveries/"
    assert (found(carol, f"{path}?state=failed"), found(carol, f"{path}?state=waiting")) == (2, 0)
    assert (found(carol, f"{path}?event=task.completed"), found(carol, f"{path}?event=run.failed")) == (3, 0)


def test_evaluations_and_their_jobs_are_found_by_model(project: Project, carol: APIClient) -> None:
    model = make_model(project)
    Evaluation.objects.create(reward_model=model, name="own", data_hash="abc", metrics={})
    EvaluationJob.objects.create(reward_model=model, name="own", file_name="a")
    for path in ("evaluations/", "projects/talk/evaluation-jobs/"):
        assert (found(carol, f"{path}?model={model.pk}"), found(carol, f"{path}?model={model.pk + 1}")) == (1, 0)
    assert (found(carol, "evaluations/?data_hash=abc"), found(carol, "evaluations/?data_hash=abd")) == (1, 0)


def test_rubrics_are_found_by_key(carol: APIClient) -> None:
    assert found(carol, "rubrics/?key=helpsteer2") == 1
    assert found(carol, "rubrics/?key=none") == 0


@pytest.mark.parametrize("state", Invitation.State.values)
def test_invitations_are_found_by_the_state_that_they_show(
    project: Project, cast: Cast, carol: APIClient, state: str
) -> None:
    now = database_now()
    common = {"project": project, "created_at": now, "expires_at": now + timedelta(days=1)}
    gone, root = make_user("gone", is_active=False), make_user("root", is_superuser=True)
    wishes: list[dict[str, Any]] = [
        {"made_by": cast.carol},
        {"made_by": root},
        {"made_by": cast.alice},
        {"made_by": gone},
        {"made_by": None},
        {"made_by": cast.carol, "taken": 1},
        {"made_by": cast.carol, "expires_at": now - timedelta(days=1)},
        {"made_by": cast.carol, "taken": 1, "revoked_at": now},
    ]
    for number, wish in enumerate(wishes):
        Invitation.objects.create(**common | {"digest": str(number)} | wish)
    expected = {row.pk for row in Invitation.objects.all() if invitations.state_of(row, now=now) == state}
    answer = carol.get(f"/api/v1/projects/talk/invitations/?state={state}").json()["results"]
    assert {row["id"] for row in answer} == expected != set()
