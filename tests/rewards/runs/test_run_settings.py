"""The operator's list of backbones, from the environment to the trainer's configuration."""

from typing import Any

import pytest
from django.conf import LazySettings
from django.core.exceptions import ImproperlyConfigured

from annotator.launch import environment
from rewards.runs.run_settings import UnusableConfig, check_config, for_trainer
from rewards.trainer.trainer_process import hours_allowed


@pytest.mark.parametrize(
    ("listed", "default", "expected"),
    [
        ("", "minilm", ({"minilm": "minilm"}, "minilm")),
        ("", "/models/llama-8b", ({"minilm": "minilm", "llama-8b": "/models/llama-8b"}, "llama-8b")),
        ("", "org/model", ({"minilm": "minilm", "model": "org/model"}, "model")),
        ("large=/m/l, small=org/s", "large", ({"minilm": "minilm", "large": "/m/l", "small": "org/s"}, "large")),
        ('{"large": "/m/a=b,c"}', "minilm", ({"minilm": "minilm", "large": "/m/a=b,c"}, "minilm")),
    ],
)
def test_backbones_are_listed_by_name(listed: str, default: str, expected: Any) -> None:
    assert environment.backbones(listed, default) == expected


@pytest.mark.parametrize("listed", ["large", "{", "=x", "a b=/x", '{"large": 3}', '{"large": ""}', "minilm=/other"])
def test_a_list_that_is_not_right_stops_the_start(listed: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="REWARD_BACKBONES"):
        environment.backbones(listed, "minilm")


@pytest.mark.parametrize("hours", ["0", "-1", "many", "nan", "inf", "100000"])
def test_hours_that_are_none_stop_the_start(hours: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUN_HOURS", hours)
    with pytest.raises(ImproperlyConfigured, match="RUN_HOURS"):
        environment.hours("RUN_HOURS", 24)


def test_a_word_that_is_not_known_stops_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCORE_PRECISION", "half")
    with pytest.raises(ImproperlyConfigured, match="SCORE_PRECISION is 'half': write auto or float32"):
        environment.choice("SCORE_PRECISION", "auto", "float32")


@pytest.mark.parametrize(("given", "expected"), [("", "auto"), ("float32", "float32")])
def test_without_a_word_the_first_one_holds(given: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCORE_PRECISION", given)
    assert environment.choice("SCORE_PRECISION", "auto", "float32") == expected


def test_the_worker_looks_up_where_a_backbone_lies(settings: LazySettings) -> None:
    settings.REWARD_BACKBONES = {"minilm": "minilm", "large": "/models/large"}
    config = for_trainer({"backbone": "large", "epochs": 1}, snapshot="/snapshots/c0")
    places = {"backbone_source": "/models/large", "snapshot": "/snapshots/c0"}
    assert config == {"backbone": "large", "epochs": 1, **places}
    settings.REWARD_BACKBONES = {"minilm": "minilm"}
    with pytest.raises(UnusableConfig, match="must be one of these names: minilm"):
        for_trainer({"backbone": "large"}, snapshot="/snapshots/c0")


@pytest.mark.parametrize(("own", "allowed"), [({}, 24), ({"max_hours": 0}, 24), ({"max_hours": 2.5}, 2.5)])
def test_a_run_may_have_less_time_than_all(settings: LazySettings, own: dict[str, Any], allowed: float) -> None:
    settings.RUN_HOURS = 24
    assert hours_allowed(own) == allowed


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"patience": 0}, "patience muss größer als 0 sein, nicht 0."),
        ({"seed": -1}, "seed darf nicht negativ sein (angegeben ist -1)."),
        ({"epochs": 10**6}, "epochs darf höchstens 10.000 sein, nicht 1.000.000."),
        ({"dev_share": 2.5}, "dev_share muss zwischen 0 und 1 liegen (angegeben ist 2,5)."),
        ({"schedule": "x"}, "schedule muss einer dieser Werte sein: constant, cosine, nicht x."),
        ({"stages": []}, "stages muss einen oder mehrere dieser Werte nennen: "),
        ({"stages": ["regression"] * 99}, "die Anzahl von stages darf höchstens "),
        ({"alphas": [1e300]}, "jeder Wert von alphas darf höchstens "),
        ({"attribute_weights": {"wit": 1e300}}, "die Größe von wit in attribute_weights darf höchstens "),
        ({"seed": "x"}, 'seed kann nicht "x" sein.'),
        ({"sead": 1}, "unbekannte Schlüssel in den Einstellungen: sead."),
    ],
)
@pytest.mark.usefixtures("german")
def test_what_the_learning_core_refuses_is_said_in_the_language_of_the_reader(config: Any, said: str) -> None:
    with pytest.raises(UnusableConfig) as refused:
        check_config(config)
    assert str(refused.value).startswith(f"Das Training würde diese Einstellungen ablehnen: {said}")
