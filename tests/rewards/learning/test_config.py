from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rewards.learning.config import (
    HELPSTEER2_WEIGHTS,
    BadConfig,
    TrainConfig,
    config_hash,
    parse_config,
    read_config,
    reward_weights,
    without_places,
)


def test_it_needs_only_the_snapshot() -> None:
    assert parse_config(TrainConfig, {"snapshot": "/s"}).backbone == "minilm"


def test_it_refuses_an_unknown_key() -> None:
    with pytest.raises(BadConfig, match="unknown keys in the configuration: epoch"):
        parse_config(TrainConfig, {"snapshot": "/s", "epoch": 2})


def test_it_refuses_a_configuration_without_a_snapshot() -> None:
    with pytest.raises(BadConfig, match="lacks snapshot"):
        parse_config(TrainConfig, {})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("epochs", "2"),
        ("epochs", -1),
        ("epochs", True),
        ("seed", 1.5),
        ("learning_rate", 0),
        ("alphas", []),
        ("alphas", [0]),
        ("dev_share", 1),
        ("device", "tpu"),
        ("snapshot", ""),
        ("attribute_weights", {"helpfulness": "much"}),
    ],
)
def test_it_refuses_an_unusable_value(key: str, value: Any) -> None:
    with pytest.raises(BadConfig, match=key):
        parse_config(TrainConfig, {"snapshot": "/s", key: value})


def test_a_whole_number_is_a_fine_rate() -> None:
    assert parse_config(TrainConfig, {"snapshot": "/s", "weight_decay": 1}).weight_decay == 1.0


def test_it_refuses_what_is_not_json(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{", encoding="utf-8")
    with pytest.raises(BadConfig, match="not JSON"):
        read_config(TrainConfig, tmp_path / "config.json")


def test_it_refuses_json_that_is_no_object(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps([1]), encoding="utf-8")
    with pytest.raises(BadConfig, match="object"):
        read_config(TrainConfig, tmp_path / "config.json")


def test_helpsteer2_attributes_have_its_weights() -> None:
    assert reward_weights(list(HELPSTEER2_WEIGHTS), {}) == dict(HELPSTEER2_WEIGHTS)


def test_other_attributes_weigh_equally() -> None:
    assert reward_weights(["clarity", "safety"], {}) == {"clarity": 0.5, "safety": 0.5}


def test_given_weights_must_name_every_attribute() -> None:
    with pytest.raises(BadConfig, match="exactly clarity, safety"):
        reward_weights(["clarity", "safety"], {"clarity": 1.0})


def test_the_weight_of_segments_changes_no_hash_of_before() -> None:
    before = "ddf596cfe5a97b58245b7a2ce968e632542fcfafbcda20f816fcee734380a795"
    assert config_hash(TrainConfig("s")) == before
    assert "segment_weight" not in without_places(TrainConfig("s"))
    heavier = TrainConfig("s", segment_weight=2.0)
    assert config_hash(heavier) != before
    assert without_places(heavier)["segment_weight"] == 2.0
