"""The page on using a model elsewhere says what works."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from rewards.learning.data import Item, Turn
from rewards.learning.score import load
from rewards.learning.train import train
from tests.rewards.learning.builders import make_run
from tests.servers import ROOT

PAGE = ROOT / "docs" / "serving.md"


def test_plain_transformers_gives_our_reward(decoder_directory: Path, tmp_path: Path) -> None:
    run = make_run(tmp_path, backbone=decoder_directory, epochs=1)
    train(run)
    code = re.findall(r"```python\n(.*?)```", PAGE.read_text().split("## Plain transformers")[1], re.DOTALL)[0]
    item = Item("i", (Turn("user", "Name a prime above 10."),), "11 is one.")
    (expected,) = load(run / "model").score([item])
    assert values_of(code, run / "model") == pytest.approx(list(expected.scores.values()), abs=1e-5)
    assert values_of(code, run / "reward") == pytest.approx([expected.reward], abs=1e-5)


def values_of(code: str, directory: Path) -> Any:
    variables: dict[str, Any] = {"DIR": str(directory)}
    exec(code, variables)  # ours, from the page
    return variables["values"]
