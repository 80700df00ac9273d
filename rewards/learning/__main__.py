"""The command `python -m rewards.learning {train,evaluate,score,reward,align} DIR` runs one stage on a directory.

It exits with 0 when the stage is done, 2 for bad input (with one sentence on stderr), 143 after SIGTERM and 144 when
its parent process has died.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Callable
from pathlib import Path

from rewards.learning.process_end import end, end_on_sigterm, end_with_parent
from rewards.learning.progress import Progress
from rewards.learning.refusals import Refused

REFUSED = 2
STAGES = {
    "train": "train a baseline and a candidate on a snapshot",
    "evaluate": "judge a stored model on labelled rows",
    "score": "score responses with a stored model",
    "reward": "store the model of a training once more, as one reward for other software",
    "align": "align a language model with judged responses, or with their segments",
}
TRAINING = ("train", "align")
ALONE = ("reward",)
"""Stages for which one process is always enough, and which read no configuration."""


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m rewards.learning", description="Reward models by files.")
    stages = parser.add_subparsers(dest="stage", required=True, metavar="{" + ",".join(STAGES) + "}")
    for name, purpose in STAGES.items():
        stages.add_parser(name, help=purpose).add_argument("directory", type=Path, metavar="DIR")
    options = parser.parse_args(arguments)
    end_on_sigterm()
    end_with_parent()
    try:
        if (code := run_together(options.stage, options.directory)) is not None:
            return code
        run(options.stage, options.directory)
    except Refused as refusal:
        # Whoever supervises the run reads its events, not its stderr; only what trains is supervised.
        if options.stage in TRAINING and options.directory.is_dir():
            progress = Progress(options.directory / "progress.jsonl")
            progress.tell("error", name=type(refusal).__name__, error=str(refusal))
        sys.stderr.write(f"{refusal}\n")
        return REFUSED
    return 0


def run_together(stage: str, directory: Path) -> int | None:
    """Starts as many processes of this command as the configuration asks for and returns their exit code.

    Returns None when one process is enough, or when this process is itself one of several: then it works by itself.
    """
    from rewards.learning.torchrun import hosts, is_launched, launch, wanted

    if stage in ALONE or is_launched():
        return None
    count = wanted(stage, directory / "config.json")
    return None if count * hosts() < 2 else launch(stage, directory, count)


def run(stage: str, directory: Path) -> None:
    work = imported(stage)
    work(directory)


def imported(stage: str) -> Callable[[Path], None]:
    """Imports the stage that was asked for, and none of the others: each takes seconds."""
    # Importing makes no garbage, and each collection walks all the modules that are there so far.
    gc.disable()
    if stage == "train":
        from rewards.learning.train import train as work
    elif stage == "evaluate":
        from rewards.learning.evaluate import evaluate as work
    elif stage == "score":
        from rewards.learning.score import score as work
    elif stage == "align":
        from rewards.learning.aligning.align import align as work
    else:
        from rewards.learning.merged_reward import reward as work
    gc.freeze()
    gc.enable()
    return work


if __name__ == "__main__":
    # The libraries' progress bars and notes would hide the one sentence that matters; what runs offline stays offline.
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    # A Hub repository without safetensors is refused, not sent elsewhere to be converted.
    os.environ.setdefault("DISABLE_SAFETENSORS_CONVERSION", "1")
    end(main(sys.argv[1:]))
