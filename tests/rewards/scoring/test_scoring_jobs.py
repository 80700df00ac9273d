"""The worker's side of small requests."""

from typing import Any

import pytest
from django.db import OperationalError

from rewards import scoring, tasks
from rewards.models import RewardModel, ScoringJob
from rewards.scoring import scoring_jobs
from tests.conftest import Cast
from tests.rewards.scored import FakeScorer, make_model


@pytest.fixture
def scorer(monkeypatch: pytest.MonkeyPatch) -> FakeScorer:
    fake = FakeScorer()
    monkeypatch.setattr(scoring_jobs, "scorer_of", lambda _: fake)
    return fake


@pytest.fixture
def model(cast: Cast) -> RewardModel:
    return make_model(cast.alice.memberships.get().project, is_champion=True)


def make_job(model: RewardModel, cast: Cast, *responses: str) -> ScoringJob:
    items = [{"conversation": [{"role": "user", "content": "Why?"}], "response": response} for response in responses]
    return ScoringJob.objects.create(reward_model=model, requested_by=cast.carol, items=items)


def rewards(job: ScoringJob) -> list[float]:
    job.refresh_from_db()
    assert job.state == ScoringJob.State.DONE
    assert job.results is not None
    return [result["reward"] for result in job.results]


def test_jobs_that_wait_go_through_the_model_together(model: RewardModel, cast: Cast, scorer: FakeScorer) -> None:
    first, second = make_job(model, cast, "a", "bb"), make_job(model, cast, "ccc")
    other = make_job(make_model(model.project), cast, "d")
    scoring.answer(first.pk)
    assert (rewards(first), rewards(second)) == ([6.0, 7.0], [8.0])
    assert len(scorer.read) == 3
    other.refresh_from_db()
    assert other.state == ScoringJob.State.QUEUED


def test_no_more_together_than_one_request_may_hold(
    model: RewardModel, cast: Cast, scorer: FakeScorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scoring_jobs, "MOST_ITEMS", 3)
    queued = [make_job(model, cast, "a", "b") for _ in range(2)]
    scoring.answer(queued[0].pk)
    assert len(scorer.read) == 2


def test_a_job_is_answered_once(model: RewardModel, cast: Cast, scorer: FakeScorer) -> None:
    job = make_job(model, cast, "a")
    for _ in range(2):
        tasks.score_job(job.pk)
    assert len(scorer.read) == 1


def test_a_database_that_goes_away_is_nobody_s_fault(
    model: RewardModel, cast: Cast, scorer: FakeScorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The items went through the model; they do not go through it again before the error is known."""
    first, _second = make_job(model, cast, "a"), make_job(model, cast, "b")

    def gone(*_: object) -> None:
        raise OperationalError("the connection is closed")

    monkeypatch.setattr(scoring_jobs, "_store", gone)
    with pytest.raises(OperationalError):
        scoring.answer(first.pk)
    assert len(scorer.read) == 2


def test_one_that_cannot_be_scored_fails_alone(
    model: RewardModel, cast: Cast, scorer: FakeScorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad, good = make_job(model, cast, "bad"), make_job(model, cast, "good")
    whole = scorer.score_encoded

    def picky(encoded: Any) -> Any:
        if any("bad" in sample for sample in encoded):
            raise ValueError("unreadable")
        return whole(encoded)

    monkeypatch.setattr(scorer, "score_encoded", picky)
    tasks.score_job(good.pk)
    with pytest.raises(ValueError, match="unreadable"):
        tasks.score_job(bad.pk)
    bad.refresh_from_db()
    assert (rewards(good), bad.state, bad.error) == ([9.0], ScoringJob.State.FAILED, "ValueError: unreadable")
