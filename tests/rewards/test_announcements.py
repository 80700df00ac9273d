"""What webhooks are told of runs and models, and who misses which worker."""

from typing import Any

import pytest
from django.db import transaction

from annotator.models import Project, Webhook
from rewards import announcements
from rewards.models import RewardModel, RunState, TrainingRun
from rewards.promotion import champions
from rewards.runs import repeated_runs, runs
from tests.annotator.models.test_constraints import make_model
from tests.builders import NOW, make_project

pytestmark = pytest.mark.django_db


@pytest.fixture
def hook(project: Project) -> Webhook:
    return Webhook.objects.create(project=project, url="https://example.org/", secret="whsec_AAAA", created_at=NOW)


def sent(hook: Webhook) -> list[tuple[str, dict[str, Any]]]:
    return [(row.event, row.data) for row in hook.deliveries.order_by("pk")]


def make_run(project: Project, state: str = RunState.TRAINING, **fields: Any) -> TrainingRun:
    return TrainingRun.objects.create(project=project, reason="a test", state=state, **fields)


def test_a_run_that_fails_is_announced_once(project: Project, hook: Webhook) -> None:
    run = make_run(project)
    for _ in range(2):
        runs.fail(run, "Out of memory.", now=NOW)
    assert sent(hook) == [("run.ended", {"project": "talk", "run": run.pk, "state": "failed"})]


@pytest.mark.parametrize(
    ("end", "state"), [(runs.cancel, "cancelled"), (runs.fail, "failed"), (runs.drop, "cancelled")]
)
def test_every_end_of_a_run_is_announced(project: Project, hook: Webhook, end: Any, state: str) -> None:
    reasons: dict[Any, list[Any]] = {runs.fail: ["An error."], runs.drop: [repeated_runs.NothingNew("Nothing new.")]}
    end(make_run(project), *reasons.get(end, []), now=NOW)
    assert [data["state"] for _, data in sent(hook)] == [state]


def test_a_run_whose_worker_is_lost_for_good_is_announced(project: Project, hook: Webhook) -> None:
    run = make_run(project, attempt=3, heartbeat_at=NOW)
    make_run(make_project("other"), attempt=1, heartbeat_at=NOW)
    runs.recover_lost(now=NOW.replace(year=2027))
    assert sent(hook) == [("run.ended", {"project": "talk", "run": run.pk, "state": "failed"})]


def test_a_model_that_waited_is_announced_when_it_is_decided_on(project: Project, hook: Webhook) -> None:
    waiting = make_model(project, 1)
    TrainingRun.objects.filter(pk=waiting.run_id).update(state=RunState.AWAITING_PROMOTION)
    champions.promote(RewardModel.objects.get(pk=waiting.pk), confirmed=True, now=NOW)
    assert sent(hook) == [
        ("run.ended", {"project": "talk", "run": waiting.run_id, "state": "promoted"}),
        ("model.promoted", {"project": "talk", "model": waiting.pk, "version": 1, "replaced": None}),
    ]
    champions.promote(RewardModel.objects.get(pk=waiting.pk), confirmed=True, now=NOW)
    assert len(sent(hook)) == 2


def test_a_rejected_model_is_announced(project: Project, hook: Webhook) -> None:
    waiting = make_model(project, 1)
    TrainingRun.objects.filter(pk=waiting.run_id).update(state=RunState.AWAITING_PROMOTION)
    runs.reject(waiting.run, now=NOW)
    assert [data["state"] for _, data in sent(hook)] == ["rejected"]


def test_a_promotion_that_is_rolled_back_is_not(project: Project, hook: Webhook) -> None:
    with transaction.atomic():
        champions.promote(make_model(project, 1), confirmed=True, now=NOW)
        assert len(sent(hook)) == 1
        transaction.set_rollback(True)
    assert sent(hook) == []


def test_a_project_misses_the_workers_that_it_needs(project: Project) -> None:
    idle, by_policy, queued = make_project("idle"), make_project("policy", retrain_after_labels=5), project
    make_run(queued, RunState.QUEUED)
    make_model(project, 1, is_champion=True)
    assert set(announcements.projects_that_train()) == {by_policy, queued}
    assert set(announcements.projects_that_score()) == {project}
    assert idle not in {*announcements.projects_that_train(), *announcements.projects_that_score()}
