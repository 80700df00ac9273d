"""Two real workers with a real model over the same responses."""

import os
import re
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import LazySettings
from django.utils import timezone

from annotator.infrastructure.background import heartbeats, redis_client
from rewards import scoring
from rewards.learning.backbones import find_backbone
from rewards.models import RewardModel, Score, ScoringLane
from rewards.scoring import pass_lanes
from tests.builders import imported, make_project, task_row
from tests.celery_workers import wait_for, worker
from tests.rewards.scored import make_model

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("scoring")]
TASKS = 300


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """MiniLM with a head of random weights, stored as training would store it."""
    from rewards.learning.chat_templates import PROMPT_TEMPLATE, template_hash  # noqa: PLC0415
    from rewards.learning.model_files import Checkpoint, Manifest, save_checkpoint  # noqa: PLC0415  torch
    from rewards.learning.model_loading import load_backbone  # noqa: PLC0415
    from tests.builders import ATTRIBUTES  # noqa: PLC0415

    loaded = load_backbone(find_backbone("minilm"), attributes=ATTRIBUTES, max_length=128)
    weights = dict.fromkeys(ATTRIBUTES, 0.2)
    manifest = Manifest(
        kind="ridge",
        attributes=ATTRIBUTES,
        attribute_weights=weights,
        means=(2.0,) * len(ATTRIBUTES),
        pooling=loaded.network.pooling,
        backbone="minilm",
        template=PROMPT_TEMPLATE,
        template_hash=template_hash(PROMPT_TEMPLATE),
        max_length=128,
        snapshot="",
        training={},
    )
    place = tmp_path_factory.mktemp("model") / "model"
    save_checkpoint(place, Checkpoint(loaded, manifest))
    return place


@pytest.fixture
def champion(tmp_path: Path, settings: LazySettings, directory: Path) -> Iterator[RewardModel]:
    settings.ARTIFACTS = tmp_path / "artifacts"
    shutil.copytree(directory, settings.ARTIFACTS / "models" / "none")
    project = make_project()
    imported(project, *(task_row() for _ in range(TASKS)))
    yield make_model(project, is_champion=True)
    redis_client.connection().delete(heartbeats.KEY)


def scored_by(log: Path) -> list[int]:
    """What each turn returned, from the worker's log."""
    return [int(count) for count in re.findall(r"score_chunk\[.*\] succeeded in .*: (\d+)", log.read_text())]


def test_two_workers_score_each_response_once(champion: RewardModel, tmp_path: Path) -> None:
    with worker("score", tmp_path, log="first"), worker("score", tmp_path, log="second"):
        scoring.start(champion, now=timezone.now())
        wait_for(lambda: Score.objects.count() == 2 * TASKS, seconds=200, what="every score")
        wait_for(lambda: not ScoringLane.objects.filter(moved_at__isnull=False).exists(), what="rest")
    first, second = (sum(scored_by(tmp_path / f"{name}.log")) for name in ("first", "second"))
    assert first > 0
    assert second > 0
    assert first + second == 2 * TASKS


def test_what_a_killed_worker_leaves_the_other_scores(champion: RewardModel, tmp_path: Path) -> None:
    with worker("score", tmp_path, log="first") as first, worker("score", tmp_path, log="second"):
        scoring.start(champion, now=timezone.now())
        wait_for(lambda: scored_by(tmp_path / "first.log"), seconds=120, what="the first chunk")
        os.kill(first.pid, signal.SIGKILL)
        before = Score.objects.count()
        assert before < 2 * TASKS, "in the middle"
        assert scoring.start_due(now=timezone.now() + 2 * pass_lanes.LOST_AFTER) == 1
        wait_for(lambda: Score.objects.count() == 2 * TASKS, seconds=200, what="every score")
    assert Score.objects.values("response").distinct().count() == Score.objects.count() == 2 * TASKS
