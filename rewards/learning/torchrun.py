"""Runs several trainers with torchrun's agent in this process, which they do not outlive.

They are the processes of this machine or, where the environment says how the hosts find each other, of several.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import torch
from torch.distributed import is_torchelastic_launched
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.run import parse_args
from torch.distributed.run import run as torchrun

from rewards.learning.aligning.align_config import AlignConfig
from rewards.learning.config import BadConfig, EvaluateConfig, ScoreConfig, TrainConfig, read_config

PORT = 29_500
"""Where the hosts meet unless MASTER_PORT says otherwise: torchrun's own default."""


READ: Mapping[str, Callable[[Path], TrainConfig | EvaluateConfig | ScoreConfig | AlignConfig]] = {
    "train": partial(read_config, TrainConfig),
    "evaluate": partial(read_config, EvaluateConfig),
    "score": partial(read_config, ScoreConfig),
    "align": partial(read_config, AlignConfig),
}
"""How each stage's configuration is read."""


def is_launched() -> bool:
    """Returns whether this process is one of several that torchrun started."""
    return is_torchelastic_launched()


def wanted(stage: str, path: Path) -> int:
    """Returns how many processes the stage's configuration asks for on this machine; 0 there means one for each GPU.

    Raises:
        BadConfig: it asks for more than this machine has GPUs, or processor cores where no GPU is used.
    """
    config = READ[stage](path)
    gpus = torch.cuda.device_count() if config.device != "cpu" else 0
    most, unit = (gpus, "GPUs") if gpus else (os.cpu_count() or 1, "processor cores")
    if config.processes > most:
        raise BadConfig(f"processes must be at most {most}, the {unit} of this machine, not {config.processes}")
    return config.processes or max(1, gpus)


def hosts() -> int:
    """Returns how many hosts work on the run together; raises BadConfig where NNODES is not such a number."""
    given = _variable("NNODES") or "1"
    # torchrun takes a range as well, MIN:MAX, for runs that change their size; ours keep theirs.
    if not given.isascii() or not given.isdigit() or int(given) < 1:
        raise BadConfig(f"the environment's NNODES must be a whole number of hosts, not {given!r}")
    return int(given)


def meeting_point() -> list[str]:
    """Returns torchrun's options that say how the agents of the hosts find each other.

    Raises:
        BadConfig: the environment asks for several hosts, but lacks what they need for that.
    """
    count = hosts()
    # torchrun reads its own variables by itself; with an endpoint they are complete.
    if os.environ.get("PET_RDZV_ENDPOINT"):
        return ["--nnodes", str(count)]
    if count == 1:
        return ["--standalone"]
    address, number, port = _variable("MASTER_ADDR"), _variable("NODE_RANK"), _variable("MASTER_PORT") or str(PORT)
    if not address:
        raise BadConfig("NNODES asks for several hosts: set MASTER_ADDR to the address of the first one")
    if number not in map(str, range(count)):
        raise BadConfig(f"NNODES asks for {count} hosts: set NODE_RANK to this one's number, 0 to {count - 1}")
    if not port.isascii() or not port.isdigit() or not 0 < int(port) < 1 << 16:
        raise BadConfig(f"MASTER_PORT must be a port of the first host, not {port!r}")
    return ["--nnodes", str(count), "--node-rank", number, "--master-addr", address, "--master-port", port]


def _variable(name: str) -> str:
    # torchrun's own name for it comes first, as schedulers set that for it.
    return os.environ.get(f"PET_{name}") or os.environ.get(name, "")


def launch(stage: str, directory: Path, count: int) -> int:
    """Runs `count` processes of the stage on this machine to their end; returns 0, or the first failure's exit code.

    The reason of the failure is in that process's output.

    Raises:
        BadConfig: the environment's variables for several hosts cannot be used.
    """
    options = [*meeting_point(), "--nproc-per-node", str(count), "-m", "rewards.learning", stage, str(directory)]
    # Unless it is set, torchrun gives every process one thread and leaves the other cores idle.
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // count)))
    try:
        torchrun(parse_args(options))  # type: ignore[no-untyped-call]
    except ChildFailedError as failed:
        _, first = failed.get_first_failure()
        return first.exitcode
    return 0
