"""Base policies that can be tried at once: those in a folder, and the tiny one that the demo makes."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings

from annotator.launch import prepare
from rewards.runs import policy_settings
from rewards.runs.policy_settings import bases, folder
from rewards.runs.run_settings import UnusableConfig


@pytest.fixture(autouse=True)
def _own_folder(settings: LazySettings, tmp_path: Path) -> None:
    settings.ARTIFACTS, settings.POLICY_BASES = tmp_path / "artifacts", {}


def put(name: str) -> Path:
    place = folder() / name
    place.mkdir(parents=True)
    (place / "config.json").write_text("{}")
    return place


def test_a_model_that_is_put_into_the_folder_is_a_base_at_once() -> None:
    assert bases() == {}
    with pytest.raises(UnusableConfig, match="no base policy"):
        policy_settings.source_of("small")
    place = put("small")
    assert policy_settings.source_of("small") == str(place)
    with pytest.raises(UnusableConfig, match="one of these names: small"):
        policy_settings.source_of("../small")


def test_the_operators_list_goes_before_the_folder(settings: LazySettings) -> None:
    put("small")
    put(".small-17")  # one that is being made
    (folder() / "empty").mkdir()
    settings.POLICY_BASES = {"small": "org/small"}
    assert bases() == {"small": "org/small"}


def test_the_demo_makes_a_base_that_speaks_and_leaves_the_one_that_is_there() -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    prepare.make_policy_base()
    ((name, place),) = bases().items()
    assert name == "demo-tiny"
    tokenizer: Any = AutoTokenizer.from_pretrained(place)
    model: Any = AutoModelForCausalLM.from_pretrained(place)
    asked: Any = tokenizer.apply_chat_template(
        [{"role": "user", "content": "Why is the sky blue? ☁"}], add_generation_prompt=True, return_tensors="pt"
    )
    answer = model.generate(**asked, max_new_tokens=3)
    assert answer.shape[1] == asked["input_ids"].shape[1] + 3
    assert str(tokenizer.decode(asked["input_ids"][0])).endswith("☁<|im_end|>\n<|im_start|>assistant\n")
    written = (Path(place) / "config.json").stat().st_mtime_ns
    prepare.make_policy_base()
    assert (Path(place) / "config.json").stat().st_mtime_ns == written
    assert json.loads((Path(place) / "config.json").read_text())["model_type"] == "llama"
