"""Runs several trainers on one machine with torchrun's agent in this process, which they do not outlive."""

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
    """Returns whether this process is one of several that torchrun started."""
    return is_torchelastic_launched()


def wanted(path: Path) -> int:
    """Returns how many processes the configuration asks for; 0 there means one for each GPU.

    Raises:
        BadConfig: it asks for more than this machine has GPUs, or processor cores where no GPU is used.
    """
    config = read_config(TrainConfig, path)
    gpus = torch.cuda.device_count() if config.device != "cpu" else 0
    most, unit = (gpus, "GPUs") if gpus else (os.cpu_count() or 1, "processor cores")
    if config.processes > most:
        raise BadConfig(f"processes must be at most {most}, the {unit} of this machine, not {config.processes}")
    return config.processes or max(1, gpus)


def launch(directory: Path, count: int) -> int:
    """Runs `count` trainers to their end and returns 0, or the exit code of the first that failed.

    The reason of the failure is in that process's output.
    """
    # Unless it is set, torchrun gives every process one thread and leaves the other cores idle.
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // count)))
    options = ["--standalone", "--nproc-per-node", str(count), "-m", "rewards.learning", "train", str(directory)]
    try:
        torchrun(parse_args(options))  # type: ignore[no-untyped-call]
    except ChildFailedError as failed:
        _, first = failed.get_first_failure()
        return first.exitcode
    return 0
