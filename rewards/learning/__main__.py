"""The door: `python -m rewards.learning {train,evaluate,score} DIR`. Code 0: done; 2: bad input, in one sentence on
stderr; 143: ended by SIGTERM; 144: its parent died."""

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
}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m rewards.learning", description="Reward models by files.")
    stages = parser.add_subparsers(dest="stage", required=True, metavar="{" + ",".join(STAGES) + "}")
    for name, purpose in STAGES.items():
        stages.add_parser(name, help=purpose).add_argument("directory", type=Path, metavar="DIR")
    given = parser.parse_args(arguments)
    end_on_sigterm()
    end_with_parent()
    try:
        if given.stage == "train" and (code := train_together(given.directory)) is not None:
            return code
        run(given.stage, given.directory)
    except Refused as refusal:
        if given.stage == "train" and given.directory.is_dir():
            Progress(given.directory / "progress.jsonl").tell("error", name=type(refusal).__name__, error=str(refusal))
        sys.stderr.write(f"{refusal}\n")
        return REFUSED
    return 0


def train_together(directory: Path) -> int | None:
    """Starts as many processes of this command as the configuration wants; None where that is one, or we are one."""
    from rewards.learning.torchrun import is_launched, launch, wanted

    if is_launched() or (count := wanted(directory / "config.json")) < 2:
        return None
    return launch(directory, count)


def run(stage: str, directory: Path) -> None:
    work = imported(stage)
    work(directory)


def imported(stage: str) -> Callable[[Path], None]:
    """Each stage takes seconds to import: only the one that is asked for, and nobody looks for garbage meanwhile.

    There is none, and each look at what is there would take longer than the one before.
    """
    gc.disable()
    if stage == "train":
        from rewards.learning.train import train as work
    elif stage == "evaluate":
        from rewards.learning.evaluate import evaluate as work
    else:
        from rewards.learning.score import score as work
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
