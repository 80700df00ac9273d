"""The pages on policies: what they show, and what managers do there."""

from typing import Any

import pytest
from django.conf import LazySettings
from django.test import Client

from annotator.infrastructure.background import heartbeats
from annotator.infrastructure.background.heartbeats import QueueHealth
from annotator.models import Project
from rewards.models import Policy, RunKind, RunState, TrainingRun
from rewards.policies import policy_report
from rewards.reasons import coded
from tests.builders import NOW, imported, label_row
from tests.conftest import Cast
from tests.rewards.policies.snapshots import JUDGEMENT, make_policy, make_snapshot
from tests.rewards.scored import make_model

pytestmark = pytest.mark.django_db
WORDS = {"prompts": 80, "rate": 64.0, "low": 53.1}
FORM = {
    "policy": "small",
    "method": "dpo",
    "rejected_weight": "inverted",
    "schedule": "constant",
    "device": "auto",
    "precision": "auto",
    "beta": "0.2",
}


@pytest.fixture(autouse=True)
def _bases(settings: LazySettings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.POLICY_BASES = {"small": "org/small"}
    monkeypatch.setattr(heartbeats, "listening", lambda: dict.fromkeys(heartbeats.QUEUES, QueueHealth(1, 0.5)))


def text(client: Client, address: str, status: int = 200) -> str:
    answer = client.get(f"/projects/talk/models/{address}")
    assert answer.status_code == status
    return " ".join(answer.content.decode().split())


def offered_policy(project: Project, **fields: Any) -> Policy:
    given = {"state": Policy.State.OFFERED, "offered_at": NOW, "judgement": JUDGEMENT}
    return make_policy(project, **{**given, "reason": coded("better_answers", **WORDS), **fields})


def test_the_list_shows_each_policy_s_state_and_its_win_rate_with_the_interval(pages: Client, project: Project) -> None:
    offered_policy(project)
    make_policy(project)
    page = text(pages, "policies/")
    assert '64.0 %<span class="interval">53.1 % to 74.4 %' in page
    assert page.count(">offered</span>") == page.count(">not judged</span>") == 1


def test_a_policy_says_why_it_is_offered_and_where_it_comes_from(pages: Client, project: Project) -> None:
    policy = offered_policy(project, judge=make_model(project))
    page = text(pages, f"policies/{policy.pk}/")
    assert "on 80 prompts the champion prefers its answers to those of its base in 64.0 per cent" in page
    assert "Length-controlled win rate</dt><dd>60.0 %" in page
    assert f"version {policy.judge.version if policy.judge else ''}" in page
    assert "Offer it by hand" not in page


def test_reasons_are_said_in_german(pages: Client, project: Project, german: dict[str, str]) -> None:
    policy = offered_policy(project, reason=coded("by_hand", before=coded("may_be_chance", **WORDS)))
    answer = pages.get(f"/projects/talk/models/policies/{policy.pk}/", headers=german)
    assert "Von Hand angeboten. Abgelehnt: Bei 80 Prompts" in " ".join(answer.content.decode().split())


def test_a_policy_that_nobody_has_judged_says_so_and_can_be_offered_by_hand(pages: Client, project: Project) -> None:
    policy = make_policy(project)
    assert "the project has no champion yet" in text(pages, f"policies/{policy.pk}/")
    answer = pages.post(f"/projects/talk/models/policies/{policy.pk}/offer/", {"confirm": "on"}, follow=True)
    assert f"Policy {policy.version} is offered now." in answer.content.decode()
    policy.refresh_from_db()
    assert policy.state == Policy.State.OFFERED


def test_the_form_starts_a_run_with_what_was_changed(pages: Client, project: Project) -> None:
    snapshot = make_snapshot(project)
    answer = pages.post(
        "/projects/talk/models/policies/start/", {**FORM, "snapshot": snapshot.pk, "requested-helpfulness": "3"}
    )
    assert answer.status_code == 422, "levels are for steerlm"
    answer = pages.post("/projects/talk/models/policies/start/", {**FORM, "snapshot": snapshot.pk})
    assert answer.status_code == 302, answer.content.decode()
    run = TrainingRun.objects.get()
    assert (run.kind, run.state, run.snapshot) == (RunKind.POLICY, RunState.QUEUED, snapshot)
    assert run.config == {"policy": "small", "method": "dpo", "beta": 0.2}


def test_a_refused_setting_is_marked(pages: Client, project: Project) -> None:
    imported(project, label_row("What is it?", "It is this."))
    answer = pages.post("/projects/talk/models/policies/start/", {**FORM, "beta": "0"})
    assert answer.status_code == 422
    assert "beta must be greater than 0, not 0" in answer.content.decode()


def test_without_a_base_policy_the_pages_say_who_can_list_one(
    pages: Client, project: Project, settings: LazySettings
) -> None:
    settings.POLICY_BASES = {}
    for address in ("policies/", "policies/start/"):
        assert "No base model is configured" in text(pages, address)


@pytest.mark.parametrize("state", [RunState.TRAINING, RunState.EVALUATING, RunState.FAILED, RunState.DONE])
def test_a_run_shows_what_it_does_or_what_came_of_it(pages: Client, project: Project, state: RunState) -> None:
    run = make_policy(project).run
    TrainingRun.objects.filter(pk=run.pk).update(state=state, started_at=NOW, error="The disk is full.")
    page = text(pages, f"runs/{run.pk}/")
    said = {
        RunState.TRAINING: "The trainer starts.",
        RunState.EVALUATING: "It and its base answer held-out prompts",
        RunState.FAILED: "The disk is full.",
        RunState.DONE: "the project has no champion yet",
    }
    assert said[state] in page


def test_a_run_tells_what_was_learnt_from_what_was_kept_aside(project: Project) -> None:
    metrics = {
        "rows": {"tasks": 34, "rows": 33, "left_out": {"ties": 1}},
        "data": {"train": {"rows": 30}, "held_out": {"rows": 3}},
        "held_out": {"loss": 0.27, "examples": 3},
    }
    learnt, measured = policy_report.measured(TrainingRun(project=project, metrics=metrics))
    assert (learnt.value, learnt.interval) == ("30", "of 34 tasks")
    assert measured.note == "Rows that were kept aside and not learnt: 3."


def test_runs_of_policies_are_not_listed_among_those_of_reward_models(pages: Client, project: Project) -> None:
    run = make_policy(project).run
    assert f"/runs/{run.pk}/" not in text(pages, "")
    assert f"/runs/{run.pk}/" in text(pages, "policies/")


def test_a_reviewer_sees_neither_policies_nor_their_runs(client: Client, cast: Cast, project: Project) -> None:
    run = make_policy(project).run
    cast.bob.memberships.update(role="reviewer")
    client.force_login(cast.bob)
    assert "models/policies/" not in text(client, "")
    for address in ("", "live/", "losses/", "log/"):
        text(client, f"runs/{run.pk}/{address}", status=403)
