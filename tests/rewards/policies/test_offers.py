"""What is offered: by the rule, or by hand."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from annotator.models import AuditEntry, Project
from rewards.models import Policy, Snapshot
from rewards.policies import policy_registry
from rewards.policies.alignment import figures
from rewards.reasons import coded, in_words
from tests.builders import NOW
from tests.refusals import refusal
from tests.rewards.policies.snapshots import make_policy, make_snapshot


def judgement(rate: float, low: float, **more: Any) -> Mapping[str, Any]:
    rewards = {"reward": {"policy": 2.0, "base": 1.0}}
    return {"win_rate": rate, "win_rate_interval": [low, 1.0], "prompts": 80, "ties": 0, **rewards, **more}


@pytest.mark.parametrize(
    ("rate", "low", "state", "says"),
    [
        (0.64, 0.531, "offered", "in 64.0 per cent, and the interval begins at 53.1 per cent"),
        (0.64, 0.5, "refused", "That may be chance"),
        (0.5, 0.4, "refused", "in 50.0 per cent only"),
        (0.3, 0.2, "refused", "in 30.0 per cent only"),
    ],
)
def test_a_policy_is_offered_if_its_interval_lies_above_a_draw(rate: float, low: float, state: str, says: str) -> None:
    decision = policy_registry.decide(judgement(rate, low))
    assert decision.state == state
    assert says in in_words(decision.reason)


def test_a_policy_that_answers_as_its_base_does_is_told_so() -> None:
    decision = policy_registry.decide(judgement(0.5, 0.5, ties=80))
    assert (decision.state, decision.reason) == ("refused", coded("same_answers", prompts=80))


def test_without_an_interval_nothing_is_offered() -> None:
    assert policy_registry.decide({**judgement(1.0, 1.0), "win_rate_interval": None}).state == "refused"


def test_rewards_that_are_no_numbers_offer_nothing() -> None:
    decision = policy_registry.decide(judgement(1.0, 0.9, reward={"policy": float("nan"), "base": 1.0}))
    assert (decision.state, decision.reason) == ("refused", coded("rewards_not_numbers"))


def test_figures_are_those_computed_by_hand() -> None:
    """Won, won, drawn, lost: 2.5 of 4; 40 tokens against 24 over four prompts."""
    answers = [{"id": str(n), "policy": {"tokens": 4 * (n + 1)}, "base": {"tokens": 6}} for n in range(4)]
    rewards = {str(n): {"policy": own, "base": 1.0} for n, own in enumerate((3.0, 2.0, 1.0, 0.0))}
    shown = figures(answers, rewards)
    assert (shown["win_rate"], shown["ties"], shown["prompts"]) == (0.625, 1, 4)
    assert shown["reward"] == {"policy": 1.5, "base": 1.0}
    assert shown["tokens"] == {"policy": 10, "base": 6}
    assert np.isfinite(shown["length_controlled"])


@pytest.mark.django_db
def test_an_offer_by_hand_needs_a_yes_and_is_audited(project: Project) -> None:
    policy = make_policy(project)
    with refusal("confirmation_needed", match="no champion yet"):
        policy_registry.offer(policy, confirmed=False, now=NOW)
    offered = policy_registry.offer(policy, confirmed=True, now=NOW)
    assert (offered.state, offered.offered_at) == (Policy.State.OFFERED, NOW)
    entry = AuditEntry.objects.get(action="policy.offered")
    assert entry.details == {"overruled": in_words(coded("no_champion"))}
    with refusal("offered_already"):
        policy_registry.offer(policy, confirmed=True, now=NOW)


@pytest.mark.django_db
def test_an_erased_policy_is_not_offered(project: Project) -> None:
    policy = make_policy(project)
    policy.run.snapshot = make_snapshot(project)
    policy.run.save(update_fields=["snapshot"])
    Snapshot.objects.update(erased_at=timezone.now())
    with refusal("files_erased"):
        policy_registry.offer(policy, confirmed=True, now=NOW)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("name", "fields"),
    [("policy_version_once_per_project", {"version": 1}), ("offered_policy_says_since_when", {"state": "offered"})],
)
def test_the_database_refuses_what_must_never_be(project: Project, name: str, fields: dict[str, Any]) -> None:
    make_policy(project, version=1)
    with pytest.raises(IntegrityError, match=name), transaction.atomic():
        make_policy(project, **fields)
