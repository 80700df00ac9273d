"""How many processes a run may have: what the machine has."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import torch

from rewards.learning.config import BadConfig
from rewards.learning.torchrun import wanted


def asked(directory: Path, processes: int, *, gpus: int, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    path = directory / "config.json"
    path.write_text(json.dumps({"snapshot": "-", "processes": processes}), encoding="utf-8")
    return wanted(path)


@pytest.mark.parametrize(("gpus", "most", "of"), [(0, 4, "processor cores"), (2, 2, "GPUs")])
def test_no_more_than_the_machine_has(
    gpus: int, most: int, of: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert asked(tmp_path, most, gpus=gpus, monkeypatch=monkeypatch) == most
    with pytest.raises(BadConfig, match=f"processes must be at most {most}, the {of} of this machine, not {most + 1}"):
        asked(tmp_path, most + 1, gpus=gpus, monkeypatch=monkeypatch)


@pytest.mark.parametrize(("gpus", "count"), [(0, 1), (2, 2)])
def test_by_default_one_for_each_gpu(gpus: int, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert asked(tmp_path, 0, gpus=gpus, monkeypatch=monkeypatch) == count
