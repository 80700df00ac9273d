"""How many processes a run may have, what the machine has, and how those of several hosts find each other."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from rewards.learning.config import BadConfig
from rewards.learning.torchrun import hosts, meeting_point, wanted
from rewards.learning.train import train
from tests.rewards.learning.builders import make_run, read_json
from tests.servers import ROOT

VARIABLES = ("NNODES", "NODE_RANK", "MASTER_ADDR", "MASTER_PORT", "RDZV_ENDPOINT")


@pytest.fixture(autouse=True)
def _one_host(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(f"PET_{name}", raising=False)


def asked(directory: Path, processes: int, *, gpus: int, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    path = directory / "config.json"
    path.write_text(json.dumps({"snapshot": "-", "processes": processes}), encoding="utf-8")
    return wanted("train", path)


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


def test_alone_a_machine_meets_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (hosts(), meeting_point()) == (1, ["--standalone"])
    monkeypatch.setenv("MASTER_ADDR", "10.0.0.1")  # left behind by something else
    assert meeting_point() == ["--standalone"]


@pytest.mark.parametrize("prefix", ["", "PET_"])
def test_the_environment_says_where_hosts_meet(prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("NNODES", "3"), ("NODE_RANK", "2"), ("MASTER_ADDR", "10.0.0.1")):
        monkeypatch.setenv(prefix + name, value)
    expected = ["--nnodes", "3", "--node-rank", "2", "--master-addr", "10.0.0.1", "--master-port"]
    assert meeting_point() == [*expected, "29500"]
    monkeypatch.setenv(f"{prefix}MASTER_PORT", "4000")
    assert meeting_point() == [*expected, "4000"]


def test_torchrun_s_own_endpoint_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PET_NNODES", "2")
    monkeypatch.setenv("PET_RDZV_ENDPOINT", "10.0.0.1:4000")
    assert meeting_point() == ["--nnodes", "2"]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"NNODES": "two"}, "NNODES must be a whole number"),
        ({"NNODES": "1:4"}, "NNODES must be a whole number"),
        ({"NNODES": "2", "NODE_RANK": "0"}, "set MASTER_ADDR"),
        ({"NNODES": "2", "MASTER_ADDR": "a"}, "set NODE_RANK to this one's number, 0 to 1"),
        ({"NNODES": "2", "MASTER_ADDR": "a", "NODE_RANK": "2"}, "set NODE_RANK"),
        ({"NNODES": "2", "MASTER_ADDR": "a", "NODE_RANK": "0", "MASTER_PORT": "70000"}, "MASTER_PORT must be a port"),
    ],
)
def test_half_an_appointment_is_refused(given: dict[str, str], says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(BadConfig, match=says):
        meeting_point()


@pytest.mark.slow
def test_two_hosts_lose_what_one_does(decoder_directory: Path, tmp_path: Path) -> None:
    """Two agents that meet at a port, as those of two machines would, each with one process."""
    given: dict[str, Any] = {
        "epochs": 2,
        "patience": 3,
        "learning_rate": 1e-3,
        "device": "cpu",
        "processes": 1,
        "stages": ["regression", "scaled"],
    }
    alone, together = (make_run(tmp_path / name, backbone=decoder_directory, **given) for name in ("one", "two"))
    train(alone)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    meeting = {"NNODES": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    agents = [
        subprocess.Popen(
            [sys.executable, "-m", "rewards.learning", "train", str(together)],
            cwd=ROOT, env={**os.environ, **meeting, "NODE_RANK": str(number)},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        for number in (0, 1)
    ]  # fmt: skip
    outputs = [agent.communicate(timeout=300)[0] for agent in agents]
    assert [agent.returncode for agent in agents] == [0, 0], outputs
    metrics = [read_json(run / "metrics.json") for run in (alone, together)]
    assert [one["training"]["processes"] for one in metrics] == [1, 2]
    np.testing.assert_allclose(metrics[0]["training"]["losses"], metrics[1]["training"]["losses"], atol=1e-5)
    assert metrics[0]["candidate"]["kind"] == metrics[1]["candidate"]["kind"] == "finetuned"
