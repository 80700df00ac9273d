"""What the learning curve says to people."""

import json
from typing import Any

import pytest
from django.test import Client

from annotator.models import Project
from rewards.models import RewardModel, TrainingRun
from rewards.reports import model_figures
from tests.annotator.models.test_constraints import make_model
from tests.conftest import Cast

POINT = {"labels": 40, "prompts": 20, "error": 1.1, "low": 1.0, "high": 1.2}
ORDER = {"accuracy": 0.55, "accuracy_low": 0.5, "accuracy_high": 0.6}
OUTLOOK = {
    "labels": 300, "more": 1000, "now": 0.9, "then": 0.85, "gain": 0.05, "low": 0.02, "high": 0.08, "probability": 0.99,
    "evidence": True, "far": False,
}  # fmt: skip


def metrics(**outlook: Any) -> dict[str, Any]:
    later = POINT | {"labels": 225, "error": 0.92, "accuracy": 0.7}
    law = {"floor": 0.8, "slope": 2.0, "exponent": 0.5}
    points = [POINT | ORDER, POINT | ORDER | later]
    return {"learning_curve": {"points": points, "law": law, "outlook": OUTLOOK | outlook, "draws": 12}}


def told(**fields: Any) -> model_figures.Summary:
    outlook = model_figures.summary(metrics(**fields))
    assert outlook
    return outlook


def test_it_says_what_the_next_labels_would_bring() -> None:
    outlook = told()
    assert outlook.sentence == (
        "The next 1,000 labels would lower the RMSE from about 0.900 to 0.850, by 0.020 to 0.080 (95 % interval). "
        "The probability that they lower it at all is 99\N{NO-BREAK SPACE}%."
    )
    few, many = "55\N{NO-BREAK SPACE}%", "70\N{NO-BREAK SPACE}%"
    assert outlook.order == f"Pairs in the right order: {few} with 40 labels, {many} with 225."


def test_a_flat_curve_is_no_evidence() -> None:
    said = told(evidence=False, low=-0.01, high=0.02).sentence
    assert said.startswith("It is uncertain whether the next 1,000 labels would lower the RMSE from 0.900")
    assert "between \N{MINUS SIGN}0.010 and 0.020 (95 % interval)" in said


def test_far_ahead_is_a_guess() -> None:
    assert told(far=True).sentence.endswith("treat it as a guess.")


def test_preferences_are_called_so() -> None:
    stored = metrics()
    stored["learning_curve"]["measure"] = "wrong"
    outlook = model_figures.summary(stored)
    assert outlook
    assert "The next 1,000 preferences would lower the share of pairs in the wrong order" in outlook.sentence


def test_a_curve_of_an_earlier_version_is_still_shown() -> None:
    stored = json.loads(
        json.dumps(metrics())
        .replace('"error"', '"rmse"')
        .replace('"now"', '"rmse_now"')
        .replace('"then"', '"rmse_then"')
    )
    del stored["learning_curve"]["outlook"]["probability"]
    assert model_figures.summary(stored)


def test_runs_without_a_curve_say_nothing() -> None:
    assert model_figures.summary({}) is None
    assert model_figures.summary({"learning_curve": None}) is None


@pytest.mark.parametrize("place", ["runs/{0.run_id}", "{0.pk}"])
def test_the_pages_of_run_and_model_say_it(project: Project, cast: Cast, client: Client, place: str) -> None:
    model: RewardModel = make_model(project, 1, is_champion=True)
    TrainingRun.objects.update(metrics=metrics())
    client.force_login(cast.carol)
    assert told().sentence in client.get(f"/projects/talk/models/{place.format(model)}/").content.decode()
