"""How processes that torchrun starts end: again and again, and each time well."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.servers import ROOT

TIMES = 4
# Forked from one parent: importing torch a hundred times would take minutes.
PAIRS = """
import os, socket, sys, time
import torch
from torch import nn
from rewards.learning import distributed, sharding
from rewards.learning.process_end import end

class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(8, 8), nn.Linear(8, 8)])

    def forward(self, batch):
        for layer in self.layers:
            batch = layer(batch)
        return batch

def work():
    distributed.join(torch.device("cpu"))
    network = Network()
    sharding.shard(network, torch.device("cpu"))
    optimizer = torch.optim.AdamW(network.parameters())
    for _ in range(3):
        network(torch.randn(4, 8)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    distributed.gathered({distributed.rank(): "done"})
    if distributed.is_first():
        time.sleep(0.2)  # writes what both have made
        print("written")
    distributed.leave()

def start(rank, port):
    if pid := os.fork():
        return pid
    os.environ.update(TORCHELASTIC_RUN_ID="test", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    os.environ.update(WORLD_SIZE="2", RANK=str(rank), LOCAL_RANK=str(rank))
    work()
    end(0)

codes = []
for _ in range(int(sys.argv[1])):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    pids = [start(rank, port) for rank in (0, 1)]
    codes += [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
print("codes", *codes)
"""
REFUSED = """
from rewards.learning.process_end import end
print("said, but not flushed", end="")
end(2)
"""


@pytest.mark.slow
def test_two_processes_end_well_four_times_in_a_row() -> None:
    command = [sys.executable, "-c", PAIRS, str(TIMES)]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True, timeout=600)
    lines = done.stdout.splitlines()
    assert lines.count("written") == TIMES
    assert lines[-1] == f"codes{' 0' * 2 * TIMES}", done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("launched", "code"), [(True, 0), (False, -signal.SIGABRT)])
def test_a_process_of_several_does_not_tear_its_interpreter_down(launched: bool, code: int, tmp_path: Path) -> None:
    """Here the farewell aborts each time, not in one run of four. The run is done, so that nothing is left to do."""
    (tmp_path / "sitecustomize.py").write_text("import atexit, os\natexit.register(os.abort)\n", encoding="utf-8")
    (tmp_path / "metrics.json").write_text("{}", encoding="utf-8")
    (tmp_path / "config.json").write_text('{"snapshot": "-", "device": "cpu"}', encoding="utf-8")
    (tmp_path / "model").mkdir()
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)} | ({"TORCHELASTIC_RUN_ID": "test"} if launched else {})
    command = [sys.executable, "-m", "rewards.learning", "train", str(tmp_path)]
    assert subprocess.run(command, cwd=ROOT, env=environment, check=False, capture_output=True).returncode == code


def test_a_refusal_s_code_and_last_words_stay() -> None:
    environment = {"TORCHELASTIC_RUN_ID": "test"}
    done = subprocess.run([sys.executable, "-c", REFUSED], cwd=ROOT, env=environment, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (2, b"said, but not flushed")
