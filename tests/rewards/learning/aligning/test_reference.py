"""The reference's log-probabilities are computed once, and again when anything that they depend on has changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from rewards.learning.aligning.policy import Policy, find_policy, load_policy
from rewards.learning.aligning.reference import Judgements, OtherVocabulary, with_reference
from rewards.learning.aligning.sides import Unit
from rewards.learning.progress import Progress
from tests.rewards.learning.aligning.builders import make_judged_rows, make_units
from tests.rewards.learning.builders import read_events

Stored = Callable[..., Judgements]


@pytest.fixture
def policy(decoder_directory: Path) -> Policy:
    return load_policy(find_policy(str(decoder_directory)), max_length=64, device=torch.device("cpu"))


@pytest.fixture
def units(policy: Policy, tmp_path: Path) -> list[Unit]:
    return make_units(tmp_path, policy.frame, make_judged_rows(4))


@pytest.fixture
def stored(policy: Policy, units: list[Unit], tmp_path: Path) -> Stored:
    def compute(*, of: list[Unit] = units, source_hash: str = "s", half: bool = False) -> Judgements:
        progress = Progress(tmp_path / "progress.jsonl")
        return with_reference(
            of, tmp_path / "reference", source_hash=source_hash, half=half, load=lambda: policy, progress=progress
        )

    return compute


def events(directory: Path) -> list[str]:
    return [event["event"] for event in read_events(directory)]


def test_it_is_computed_once(stored: Stored, tmp_path: Path) -> None:
    first, second = stored(), stored()
    assert events(tmp_path) == ["reference_computed", "reference_read"]
    for ours, theirs in zip(first.reference, second.reference, strict=True):
        assert [side.tolist() for side in ours] == [side.tolist() for side in theirs]


def test_each_side_has_a_value_for_each_of_its_learnt_tokens(stored: Stored, units: list[Unit]) -> None:
    lengths = [[len(values) for values in sides] for sides in stored().reference]
    assert lengths == [[len(side.learnt) for side in unit.sides] for unit in units]


def test_the_values_are_the_policy_s(stored: Stored, policy: Policy, units: list[Unit]) -> None:
    with torch.no_grad():
        apart = [policy.log_probs([[side.encoded]]).numpy() for unit in units for side in unit.sides]
    together = [values for sides in stored().reference for values in sides]
    np.testing.assert_allclose(np.concatenate(together), np.concatenate(apart), atol=1e-5)


@pytest.mark.parametrize("changed", ["tokens", "source", "precision"])
def test_another_model_other_tokens_or_another_precision_are_computed_anew(
    changed: str, stored: Stored, units: list[Unit], tmp_path: Path
) -> None:
    stored()
    others: dict[str, Any] = {"tokens": {"of": units[:3]}, "source": {"source_hash": "t"}, "precision": {"half": True}}
    stored(**others[changed])
    assert events(tmp_path) == ["reference_computed", "reference_computed"]


def test_damage_is_told_and_computed_anew(stored: Stored, tmp_path: Path) -> None:
    whole = stored().reference
    (file,) = (tmp_path / "reference").glob("*/log_probs.safetensors")
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    again = stored().reference
    assert events(tmp_path)[1:] == ["reference_refused", "reference_computed"]
    assert again[-1][-1].tolist() == whole[-1][-1].tolist()


def test_a_model_of_another_vocabulary_is_refused(stored: Stored, policy: Policy) -> None:
    policy.network.config.vocab_size = 50
    with pytest.raises(OtherVocabulary, match="must share one vocabulary"):
        stored()
