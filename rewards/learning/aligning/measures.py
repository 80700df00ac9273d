"""Measures a policy on judged rows: loss, implicit rewards, margins, accuracy over all pairs, and lengths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from rewards.learning.aligning.config import IMITATING, AlignConfig
from rewards.learning.aligning.objective import divisor, response_sums, total_loss, trained_sides
from rewards.learning.aligning.policy import Policy
from rewards.learning.aligning.reference import Judgements, LogProbs, log_probs_of
from rewards.learning.aligning.sides import Unit
from rewards.learning.intervals import of_share
from rewards.learning.pairs import in_order
from rewards.learning.progress import Count, Progress

Measures = dict[str, Any]


def measure(policy: Policy, judged: Judgements, config: AlignConfig, *, progress: Progress | None = None) -> Measures:
    """Returns the loss over all units at once, and what the policy prefers in those that are pairs.

    An implicit reward is beta times the log-ratio of a response to the reference. A tie counts half.
    """
    if not judged.units:
        return {"examples": 0}
    values = log_probs_of(policy, judged.units, Count("measure", len(judged.units), progress))
    pairs = [place for place, unit in enumerate(judged.units) if unit.rejected]
    counts = [len(trained_sides(unit, config.method)) for unit in judged.units]
    ours, theirs = (
        _flat([sides[:count] for sides, count in zip(of, counts, strict=True)]) for of in (values, judged.reference)
    )
    chosen = [unit.chosen.encoded.response_tokens for unit in judged.units]
    rejected = [unit.rejected.encoded.response_tokens for unit in judged.units if unit.rejected]
    return {
        "examples": len(judged.units),
        "loss": total_loss(judged.units, ours, theirs, config).item() / max(1, divisor(judged.units, config.method)),
        **_preferences(pairs, values, judged, config),
        "lengths": {"chosen": float(np.mean(chosen)), "rejected": float(np.mean(rejected)) if rejected else None},
    }


def _preferences(
    pairs: Sequence[int], values: Sequence[Sequence[LogProbs]], judged: Judgements, config: AlignConfig
) -> Measures:
    """Returns what the pairs' implicit rewards say; without pairs nothing."""
    if not pairs:
        return {"pairs": 0}
    units = [judged.units[place] for place in pairs]
    ratios = _flat([values[place] for place in pairs]) - _flat([judged.reference[place] for place in pairs])
    chosen, rejected = (sums.numpy() * config.beta for sums in response_sums(units, ratios))
    right = in_order(chosen - rejected)
    per_token = [
        float(sums.sum() / config.beta / max(1, sum(len(side.learnt) for side in sides)))
        for sums, sides in ((chosen, [unit.sides[0] for unit in units]), (rejected, [unit.sides[1] for unit in units]))
    ]
    return {
        "pairs": len(pairs),
        "reward_accuracy": float(right.mean()),
        "ties": int((chosen == rejected).sum()),
        "intervals": of_share(right, [unit.prompt for unit in units]),
        "margin": float((chosen - rejected).mean()),
        "chosen_reward": float(chosen.mean()),
        "rejected_reward": float(rejected.mean()),
        "log_ratio_per_token": {"chosen": per_token[0], "rejected": per_token[1]},
    }


def _flat(values: Sequence[Sequence[LogProbs]]) -> torch.Tensor:
    """[learnt tokens] in float64: sums over many rows must not add rounding errors of their own."""
    return torch.from_numpy(np.concatenate([part for sides in values for part in sides]).astype(np.float64))


def weightless(units: Sequence[Unit], method: str) -> int:
    """Counts the pairs whose segments all have the weight 0, from which nothing is learnt."""
    if method in IMITATING:
        return 0
    return sum(not any(weight for side in unit.sides for weight in side.weights) for unit in units)
