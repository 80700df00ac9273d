"""Several trainers on one machine: torchrun's agent in this process, which they do not outlive."""

from __future__ import annotations

import os
from pathlib import Path

import torch
from torch.distributed import is_torchelastic_launched
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.run import parse_args
from torch.distributed.run import run as torchrun

from rewards.learning.config import BadConfig, TrainConfig, read_config


def is_launched() -> bool:
    """Whether this process is one of several."""
    return is_torchelastic_launched()


def wanted(path: Path) -> int:
    """How many processes the configuration asks for; 0 there means one for each GPU.

    Raises:
        BadConfig: more than this machine has GPUs, or cores where it is to do without.
    """
    config = read_config(TrainConfig, path)
    gpus = torch.cuda.device_count() if config.device != "cpu" else 0
    most, of = (gpus, "GPUs") if gpus else (os.cpu_count() or 1, "processor cores")
    if config.processes > most:
        raise BadConfig(f"processes must be at most {most}, the {of} of this machine, not {config.processes}")
    return config.processes or max(1, gpus)


def launch(directory: Path, count: int) -> int:
    """Runs them to their end; the code is 0, or that of the first that failed, whose reason stands in the log."""
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // count)))
    options = ["--standalone", "--nproc-per-node", str(count), "-m", "rewards.learning", "train", str(directory)]
    try:
        torchrun(parse_args(options))  # type: ignore[no-untyped-call]
    except ChildFailedError as failed:
        _, first = failed.get_first_failure()
        return first.exitcode
    return 0
