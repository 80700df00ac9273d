"""Has a policy and the one that it was made from answer the same prompts, so that somebody else can compare them.

It is no stage of the command: `python -m rewards.learning.aligning.answering DIR` runs it in a process of its own.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rewards.learning.aligning.align_config import AlignConfig
from rewards.learning.aligning.judged_rows import read_prompts
from rewards.learning.aligning.policy import ABOUT, load_configured
from rewards.learning.aligning.sampling import Measures, Sample, answers, sampled_log_probs, sampled_measures
from rewards.learning.aligning.steering import conditioned
from rewards.learning.atomic_directories import write_json
from rewards.learning.config import read_config
from rewards.learning.data import Turn, file_sha256
from rewards.learning.inference import start
from rewards.learning.process_end import end, end_on_sigterm, end_with_parent
from rewards.learning.progress import Progress
from rewards.learning.refusals import Refused
from rewards.learning.score import write_rows

REFUSED = 2
PROMPTS, ANSWERS, METRICS = "prompts.jsonl", "answers.jsonl", "metrics.json"


def answer(directory: Path) -> None:
    """Reads config.json and prompts.jsonl of `directory`, writes progress.jsonl, answers.jsonl and, last, metrics.json.

    The configuration is that of an alignment: `policy` is the directory of the aligned policy, `reference` what it was
    made from. Both draw up to `sample_tokens` tokens at temperature 1 from the same seed, so that the divergence can be
    estimated. A row of answers.jsonl has the prompt's `id`, and for `policy` and `base` the `text`, its `tokens`, and
    whether it `ended` by itself. A policy that reads levels is asked for those that its alignment was told to request;
    its base reads the plain prompt.

    If the same prompts have been answered already, it returns at once.

    Raises:
        BadConfig, NoSuchDevice: the configuration cannot be used.
        MissingFile, BadRow: the prompts cannot be used.
        MissingPolicy, NotALanguageModel, IncompleteWeights, OtherVocabulary: a policy cannot be used.
    """
    prompts_hash = file_sha256(directory / PROMPTS)
    if _answered(directory) == prompts_hash:
        return
    config = read_config(AlignConfig, directory / "config.json")
    prompts = read_prompts(directory / PROMPTS)
    progress = Progress(directory / "progress.jsonl")
    ours, theirs, divergence = _answers_of_both(config, [turns for _id, turns in prompts], progress)
    rows = zip(prompts, ours, theirs, strict=True)
    write_rows(
        directory / ANSWERS,
        ({"id": prompt, "policy": _row(one), "base": _row(other)} for (prompt, _turns), one, other in rows),
    )
    measured = {"policy": _lengths(ours), "base": _lengths(theirs), "divergence": divergence}
    write_json(directory / METRICS, {"prompts": len(prompts), "prompts_hash": prompts_hash, **measured})


def _answers_of_both(
    config: AlignConfig, prompts: Sequence[tuple[Turn, ...]], progress: Progress
) -> tuple[list[Sample], list[Sample], Measures | None]:
    """Returns the policy's answers, its base's, and how far the policy's tokens diverge from the base."""
    device, about = start(config.device, config.threads), Path(config.policy) / ABOUT
    # Those that the policy was aligned to be asked for.
    levels: dict[str, int] = json.loads(about.read_bytes()).get("requested", {}) if about.is_file() else {}
    policy = load_configured(config.policy, config, device)
    ours = answers(policy, [conditioned(turns, levels) for turns in prompts], config, progress=progress)
    policy.try_packing()
    drawn = sampled_log_probs(policy, ours)
    # The base needs the policy's room.
    del policy
    base = load_configured(config.reference, config, device)
    theirs = answers(base, prompts, config, progress=progress)
    base.try_packing()
    return ours, theirs, sampled_measures(ours, drawn, lambda: sampled_log_probs(base, ours))


def _answered(directory: Path) -> str | None:
    """Returns the hash of the prompts that have been answered; None if there are no answers."""
    try:
        metrics = json.loads((directory / METRICS).read_bytes())
    except (OSError, ValueError):
        return None
    return str(metrics["prompts_hash"]) if (directory / ANSWERS).is_file() else None


def _row(sample: Sample) -> dict[str, Any]:
    return {"text": sample.text, "tokens": sample.unit.chosen.encoded.response_tokens, "ended": sample.ended}


def _lengths(samples: Sequence[Sample]) -> dict[str, float]:
    tokens = [sample.unit.chosen.encoded.response_tokens for sample in samples]
    return {"tokens": float(np.mean(tokens)), "ended": float(np.mean([sample.ended for sample in samples]))}


def main(directory: Path) -> int:
    """Runs as a stage does: ends with its parent and on SIGTERM, and says in one sentence what it refuses."""
    end_on_sigterm()
    end_with_parent()
    try:
        answer(directory)
    except Refused as refusal:
        sys.stderr.write(f"{refusal}\n")
        return REFUSED
    return 0


if __name__ == "__main__":
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    end(main(Path(sys.argv[1])))
