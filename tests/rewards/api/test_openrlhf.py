"""OpenRLHF's remote reward protocol, as its trainers speak it."""

import json
from base64 import b64encode
from typing import Any
from unittest.mock import ANY

import pytest
from django.test import Client
from rest_framework.test import APIClient

from annotator.celery import app
from annotator.infrastructure.background import heartbeats
from annotator.infrastructure.background.heartbeats import QueueHealth
from annotator.models import AuditEntry, Project, Token
from rewards.api import openrlhf
from rewards.models import RewardModel, ScoringJob
from tests.builders import ATTRIBUTES, make_project
from tests.conftest import Cast
from tests.rewards.scored import make_model

PROMPT = "<|im_start|>user\nWhy?<|im_end|>\n<|im_start|>assistant\n"
BODY = {"query": [f"{PROMPT}So.<|im_end|>", f"{PROMPT}No."], "prompts": [PROMPT, PROMPT], "labels": [None, "x"]}


@pytest.fixture(autouse=True)
def _clear() -> None:
    openrlhf._note.cache_clear()


@pytest.fixture
def champion(project: Project) -> RewardModel:
    return make_model(project, is_champion=True)


ADDRESS = "/api/v1/openrlhf/talk/"


@pytest.fixture
def token(cast: Cast) -> str:
    return str(Token.objects.create(cast.carol)[1])


def as_password(token: str) -> str:
    """The header that clients make of `http://token:SECRET@host/`."""
    return f"Basic {b64encode(f'token:{token}'.encode()).decode()}"


@pytest.fixture
def items(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What a worker was asked to score; it answers with the responses' lengths."""
    seen: list[Any] = []

    def work(_: str, args: list[int], **options: Any) -> None:
        job = ScoringJob.objects.get(pk=args[0])
        seen.extend(job.items)
        results = [
            {"scores": dict.fromkeys(ATTRIBUTES, 1.5), "reward": len(item["response"]) * 1.0} for item in job.items
        ]
        ScoringJob.objects.filter(pk=job.pk).update(results=results, state=ScoringJob.State.DONE)

    monkeypatch.setattr(heartbeats, "listening", lambda: dict.fromkeys(heartbeats.QUEUES, QueueHealth(1, 0.0)))
    monkeypatch.setattr(app, "send_task", work)
    return seen


def sent(token: str, body: Any = None, *, address: str = ADDRESS) -> Any:
    headers = {"authorization": as_password(token)} if token else {}
    said = json.dumps(BODY if body is None else body)
    return Client().post(address, said, content_type="application/json", headers=headers)


def test_a_trainer_gets_its_rewards(champion: RewardModel, token: str, items: list[Any]) -> None:
    answer = sent(token)
    logs = {key: [1.5, 1.5] for key in ATTRIBUTES}
    assert (answer.status_code, answer.json()) == (
        200,
        {"rewards": [3.0, 3.0], "scores": [3.0, 3.0], "extra_logs": logs},
    )
    asked = {"conversation": [{"role": "user", "content": "Why?"}], "response": ANY}
    assert items == [asked | {"response": "So."}, asked | {"response": "No."}]


def test_no_job_is_left_behind_and_one_entry_an_hour(champion: RewardModel, token: str, items: list[Any]) -> None:
    for _ in range(3):
        assert sent(token).status_code == 200
    assert not ScoringJob.objects.exists()
    entry = AuditEntry.objects.get(action="scoring.asked")
    assert (entry.actor, entry.details["by"]) == ("carol", "OpenRLHF")
    assert entry.token


def test_a_run_may_keep_to_one_model(project: Project, champion: RewardModel, token: str, items: list[Any]) -> None:
    other = make_model(project)
    elsewhere = make_model(make_project("other"))
    codes = [
        sent(token, address=f"{ADDRESS}?model={model}").status_code for model in (other.pk, elsewhere.pk, "x", "9" * 30)
    ]
    assert codes == [200, 404, 400, 400]


def test_without_the_token_nobody_gets_in(champion: RewardModel, cast: Cast) -> None:
    assert sent("").status_code == 401
    assert sent("wrong").status_code == 401
    assert sent(str(Token.objects.create(cast.dave)[1])).status_code == 404


def test_a_token_in_the_address_is_refused_with_a_word(champion: RewardModel, token: str) -> None:
    answer = sent("", address=f"{ADDRESS}?token={token}")
    assert answer.status_code == 401
    assert "before the host" in answer.json()["detail"]
    assert token not in answer.content.decode()


def test_a_token_as_password_opens_no_other_door(champion: RewardModel, token: str) -> None:
    answer = APIClient().get("/api/v1/me/", headers={"authorization": as_password(token)})
    assert answer.status_code == 401


def test_what_is_no_password_is_401(champion: RewardModel) -> None:
    answer = Client().post(ADDRESS, "{}", content_type="application/json", headers={"authorization": "Basic %%%"})
    assert answer.status_code == 401


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 400),
        ([], 400),
        ({"query": "text", "prompts": ["text"]}, 400),
        ({"query": [], "prompts": []}, 400),
        ({"query": ["a b"], "prompts": []}, 400),
        ({"query": ["a b"], "prompts": ["c"]}, 400),
        ({"query": ["a"] * (openrlhf.MOST_QUERIES + 1), "prompts": []}, 413),
    ],
    ids=lambda given: str(given)[:40],
)
def test_what_cannot_be_scored_is_refused(
    champion: RewardModel, token: str, items: list[Any], body: Any, status: int
) -> None:
    answer = sent(token, body)
    assert (answer.status_code, set(answer.json())) == (status, {"detail", "code", "errors"})


def test_with_no_worker_or_no_time_it_says_503(
    champion: RewardModel, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (sent(token).status_code, sent(token).json()["code"]) == (503, "no_worker")
    monkeypatch.setattr(heartbeats, "listening", lambda: dict.fromkeys(heartbeats.QUEUES, QueueHealth(1, 0.0)))
    monkeypatch.setattr(openrlhf, "WAIT_SECONDS", 0.01)
    answer = sent(token)
    assert (answer.status_code, answer.json()["code"]) == (503, "scoring_too_slow")
    assert not ScoringJob.objects.exists()
