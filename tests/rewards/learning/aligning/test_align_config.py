from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rewards.learning.aligning.align_config import METHODS, AlignConfig, public_settings, setting_hash
from rewards.learning.config import BadConfig, parse_config

NEEDED: dict[str, Any] = {"method": "dpo", "policy": "p", "data": "d"}


@pytest.mark.parametrize("method", METHODS)
def test_a_method_and_two_places_are_enough(method: str) -> None:
    assert parse_config(AlignConfig, {**NEEDED, "method": method}).method == method


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"method": "ppo"}, "method must be one of sft, steerlm, dpo, dpo_1d, dpo_2d, not ppo"),
        ({"policy": ""}, "policy cannot be"),
        ({"beta": 0}, "beta must be greater than 0"),
        ({"beta": "high"}, "beta cannot be"),
        ({"rejected_weight": "zero"}, "rejected_weight must be one of inverted, identity"),
        ({"aspect_weights": {"a": -1.0}}, "a in aspect_weights must not be negative"),
        ({"aspect_weights": {"a": 0.0}}, "aspect_weights must not all be 0"),
        ({"levels": 1}, "levels must be at least 2"),
        ({"held_out_share": 1.0}, "held_out_share must be less than 1"),
        ({"requested": {"helpfulness": 4.0}}, "requested is for the method steerlm: dpo asks for no levels"),
        ({"method": "steerlm", "requested": {"helpfulness": 5.0}}, "a whole number from 0 to 4, not 5"),
        ({"processes": 65}, "processes must be at most 64"),
        ({"sample_tokens": 10**9}, "sample_tokens must be at most"),
        ({"learning_rat": 1.0}, "unknown keys in the configuration: learning_rat"),
    ],
)
def test_what_a_configuration_may_not_hold(given: dict[str, Any], says: str) -> None:
    with pytest.raises(BadConfig, match=says):
        parse_config(AlignConfig, {**NEEDED, **given})


def test_places_are_not_hashed_but_what_is_there() -> None:
    config = AlignConfig(**NEEDED)
    moved = replace(config, policy="/elsewhere/p", threads=3)
    assert setting_hash(config, data="1") == setting_hash(moved, data="1") != setting_hash(config, data="2")
    assert setting_hash(config, data="1") != setting_hash(replace(config, beta=0.2), data="1")


def test_what_others_read_names_no_folder() -> None:
    public = public_settings(AlignConfig(method="dpo", policy="/home/x/qwen", data="/home/x/rows.jsonl"))
    assert public["policy"] == "qwen"
    assert "/home" not in str(public)
