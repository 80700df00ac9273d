"""One run from snapshot to verdict, with a real trainer."""

import pytest
from django.test import Client

from annotator.models import Project
from rewards import tasks
from rewards.learning.data import read_tasks
from rewards.models import RewardModel, RunState, TrainingRun
from rewards.promotion import promotion
from rewards.reasons import PAIRS
from rewards.registry import registry
from rewards.runs import runs
from tests.builders import NOW, imported, label_row, make_user
from tests.rewards.labelled import labelled_project, preferred_project

pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.xdist_group("scoring"),
    pytest.mark.usefixtures("workers"),
]
CONFIG = {"epochs": 0, "threads": 1, "batch_tokens": 512, "seed": 5}


def trained(project: Project) -> TrainingRun:
    run = runs.request(project, reason="a test")
    tasks.train(run.pk)
    run.refresh_from_db()
    return run


def test_a_better_model_waits_where_a_manager_decides() -> None:
    run = trained(labelled_project(tasks=60, training_config=CONFIG, promote_automatically=False))
    model = RewardModel.objects.get(run=run)
    assert (run.state, run.finished_at, model.is_champion) == (RunState.AWAITING_PROMOTION, None, False), run.error
    assert run.verdict["promote"]
    assert (run.config_hash, run.seed) == (run.metrics["config_hash"], run.metrics["seed"])
    assert run.metrics["learning_curve"]["outlook"]["more"] == 1000
    assert (run.directory() / "expected.jsonl").is_file()
    assert registry.verify(model) == []
    promotion.promote(model, now=NOW)
    run.refresh_from_db()
    assert (run.state, run.finished_at) == (RunState.PROMOTED, NOW)


def prompts_of(run: TrainingRun, part: str) -> set[str]:
    assert run.snapshot
    return {task.prompt_hash for task in read_tasks(run.snapshot.directory() / f"{part}.jsonl")}


def test_the_champion_is_judged_by_no_prompt_that_it_has_learnt_from() -> None:
    """A larger held-out part takes prompts from the champion's train part: these are fair to neither."""
    project = labelled_project(tasks=60, training_config=CONFIG)
    first = trained(project)
    assert (first.state, first.verdict["look"]) == (RunState.PROMOTED, 1), first.error
    assert first.verdict["prompts"] == len(prompts_of(first, "train") | prompts_of(first, "validation"))
    Project.objects.update(validation_share=0.5)
    imported(project, *(label_row(f"New question {n}?", "It is so. " * (n % 5), helpfulness=n % 5) for n in range(10)))
    second = trained(project)
    learnt = prompts_of(first, "train") & prompts_of(second, "validation")
    every = prompts_of(second, "train") | prompts_of(second, "validation")
    assert learnt
    assert second.verdict["prompts"] == len(every - learnt), second.error
    assert (second.verdict["against"], second.verdict["look"]) == ("the champion", 1)
    # Texts stand in snapshots alone, where an erasure finds them.
    assert [path for path in second.directory().rglob("*.json*") if "New question" in path.read_text()] == []


def test_preferences_alone_make_a_model_that_is_judged_by_pairs(client: Client) -> None:
    run = trained(preferred_project(tasks=60, training_config=CONFIG | {"stages": ["bradley_terry"]}))
    assert (run.state, run.verdict["measure"]) == (RunState.PROMOTED, PAIRS), run.error
    pairs = run.metrics["candidate"]["pairwise"]
    assert run.metrics["candidate"]["rmse"] is None
    assert pairs["pairs"] < run.verdict["prompts"] == 60
    assert pairs["accuracy"] > 0.9
    client.force_login(make_user("root", is_staff=True, is_superuser=True))
    model = RewardModel.objects.get(run=run)
    for page in (f"trainingrun/{run.pk}", f"rewardmodel/{model.pk}", f"snapshot/{model.run.snapshot_id}"):
        assert client.get(f"/admin/rewards/{page}/change/").status_code == 200
    page_text = client.get(f"/projects/{run.project.slug}/models/runs/{run.pk}/").content.decode()
    assert f"{pairs['pairs']} pairs (of which the longer response is right in {pairs['longer_wins']:.3f})" in page_text


def test_preferences_alone_teach_the_ridge_where_the_stage_needs_ratings() -> None:
    run = trained(preferred_project(tasks=60, training_config=CONFIG | {"epochs": 1, "cross_fit_minutes": 0}))
    assert run.state == RunState.PROMOTED, run.error
    assert run.metrics["candidate"]["kind"] == "ridge"
    assert run.metrics["candidate"]["pairwise"]["accuracy"] > 0.9
