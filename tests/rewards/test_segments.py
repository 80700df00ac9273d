"""A model of segments in the product: trained on a project's labels, judged, promoted, and asked for every segment."""

import random

import numpy as np
import pytest
from django.test import Client

from annotator.infrastructure.db.clock import database_now
from annotator.models import Project, Response
from annotator.outputs.exporting.filters import Filters
from annotator.outputs.exporting.layouts import LAYOUTS
from rewards import tasks
from rewards.models import RewardModel, RunState, Score, TrainingRun
from rewards.runs import runs
from rewards.scoring.chunks import Chunk, score_chunk, scorer_of
from tests.annotator.segmented import make_segmented_project
from tests.builders import ATTRIBUTES, imported, make_project, make_user

pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.xdist_group("scoring"),
    pytest.mark.usefixtures("workers"),
]
CONFIG = {"epochs": 0, "threads": 1, "batch_tokens": 512, "seed": 5}
GOOD = ("Rinse the rice in cold water.", "Let it rest for ten minutes.", "Two cups of water are enough.")
BAD = ("Buy our lottery tickets now!", "I refuse to talk about this.", "Vote for the purple party today!")


def segmented_project(*, tasks: int) -> Project:
    """Sentences that help and sentences that do not, labelled so."""
    project = make_segmented_project(validation_share=0.3, training_config=CONFIG)
    dice = random.Random(3)
    rows = []
    for number in range(tasks):
        for _ in range(2):
            levels = [dice.choice((0, 4)) for _ in range(3)]
            texts = [dice.choice(GOOD if level else BAD) for level in levels]
            noisy = [min(max(level + dice.choice((-1, 0, 0, 1)), 0), 4) for level in levels]
            row = {"prompt": f"How do I boil rice, try {number}?", "response": " ".join(texts), "segments": texts}
            rows.append(row | {"helpfulness": levels, "clarity": noisy})
    assert imported(project, *rows).created == tasks
    return project


def test_a_model_of_segments_from_labels_to_scores(client: Client) -> None:
    project = segmented_project(tasks=60)
    run = runs.request(project, reason="a test")
    tasks.train(run.pk)
    run.refresh_from_db()
    assert run.state == RunState.PROMOTED, run.error or run.verdict
    model = RewardModel.objects.get(run=run)
    assert model.manifest["aspects"] == ["helpfulness", "clarity"]
    candidate, mean = run.metrics["candidate"], run.metrics["mean"]
    assert (
        candidate["segments"]["aspects"]["helpfulness"]["rmse"]
        < 0.7 * mean["segments"]["aspects"]["helpfulness"]["rmse"]
    )
    first, last = project.tasks.earliest("pk").pk, project.tasks.latest("pk").pk
    assert score_chunk(Chunk(model, first, last), scorer_of(model), now=database_now()) == 120
    scored = list(Score.objects.select_related("response"))
    assert all(len(one.segment_scores or ()) == len(one.response.segments or ()) == 3 for one in scored)
    gaps = [np.ptp([row[0] for row in one.segment_scores or ()]) for one in scored]
    mixed = [
        gap
        for gap, one in zip(gaps, scored, strict=True)
        if any(text in one.response.text for text in GOOD) and any(text in one.response.text for text in BAD)
    ]
    assert sum(mixed) / len(mixed) > 1.5
    exported = list(LAYOUTS["scores"].rows(project, Filters(), project.tasks.none()))
    assert len(exported[0]["segments"]) == len(exported[0]["segment_scores"]) == 3
    assert exported[0]["aspects"] == ["helpfulness", "clarity"]
    client.force_login(make_user("root", is_superuser=True))
    page = client.get(f"/projects/talk/models/{model.pk}/").content.decode()
    assert "It finds the worst segment in" in page
    assert "Measures of segments by aspect" in page
    page = client.get(f"/projects/talk/data/tasks/{project.tasks.earliest('pk').public_id}/").content.decode()
    assert page.count("The model expects") == 6
    assert TrainingRun.objects.count() == 1


def test_a_response_that_nobody_has_cut_is_cut_before_it_is_scored() -> None:
    project = segmented_project(tasks=20)
    run = runs.request(project, reason="a test")
    tasks.train(run.pk)
    model = RewardModel.objects.get(run=run)
    Response.objects.update(segments=None)
    assert score_chunk(Chunk(model, 0, project.tasks.latest("pk").pk), scorer_of(model), now=database_now()) == 40
    assert not Response.objects.filter(segments=None).exists()
    assert all(len(one.segment_scores or ()) == 3 for one in Score.objects.all())


def project_with_evidence(*, tasks: int) -> Project:
    """Responses of good and bad sentences; whoever rates one selects the sentences that decided."""
    project = make_project(
        learn_evidence=True, validation_share=0.3, training_config=CONFIG, base_annotators=1, max_annotators=1, keep=1
    )
    dice, texts, ratings = random.Random(3), [], []
    for number in range(tasks):
        level = dice.choice((0, 4))
        many, one = (GOOD, BAD) if level else (BAD, GOOD)
        parts = [*dice.sample(many, 2), dice.choice(one)]
        first = parts[0]
        dice.shuffle(parts)
        text = " ".join(parts)
        start = text.index(first)
        decided = {"start": start, "end": text.index(".", start) + 1 if level else start + 12, "note": ""}
        texts.append({"id": f"t-{number}", "prompt": f"How do I boil rice, try {number}?", "responses": [text]})
        ratings.append(
            {"task": f"t-{number}", "response": "1", "annotator": "a-1", "position": 0, "counts": True}
            | {"scores": dict.fromkeys(ATTRIBUTES, level), "evidence": [decided | {"attribute": "helpfulness"}]}
        )
    assert imported(project, *texts).created == tasks
    assert imported(project, *ratings).rejected == []
    return project


def test_the_words_for_a_score_teach_a_model_of_segments(client: Client) -> None:
    project = project_with_evidence(tasks=60)
    run = runs.request(project, reason="a test")
    tasks.train(run.pk)
    run.refresh_from_db()
    assert run.state == RunState.PROMOTED, run.error or run.verdict
    model = RewardModel.objects.get(run=run)
    assert model.manifest["aspects"] == ["helpfulness"]
    candidate, mean = (run.metrics[name]["segments"]["aspects"]["helpfulness"] for name in ("candidate", "mean"))
    assert candidate["rmse"] < 0.7 * mean["rmse"]
    assert score_chunk(Chunk(model, 0, project.tasks.latest("pk").pk), scorer_of(model), now=database_now()) == 60
    for one in Score.objects.select_related("response"):
        parts = [one.response.text[start:end].strip() for start, end in one.response.segments or ()]
        scored = [(part in GOOD, row[0]) for part, row in zip(parts, one.segment_scores or (), strict=True)]
        good, bad = ([score for is_good, score in scored if is_good is wanted] for wanted in (True, False))
        assert min(good) > max(bad) + 1
    exported = list(LAYOUTS["scores"].rows(project, Filters(), project.tasks.none()))
    assert (exported[0]["aspects"], len(exported[0]["segments"])) == (["helpfulness"], 3)
    client.force_login(make_user("root", is_superuser=True))
    page = client.get(f"/projects/talk/models/{model.pk}/").content.decode()
    assert "Measures of segments by aspect" in page
