"""The training loop of a policy: epochs of seeded batches of units, each one step of AdamW.

A policy is measured on judged rows by its loss, implicit rewards, margins, accuracy over all pairs, and lengths.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rewards.learning import distributed, sharding
from rewards.learning.adapters import recompute_activations
from rewards.learning.aligning.align_config import IMITATING, AlignConfig
from rewards.learning.aligning.objective import divisor, response_sums, total_loss, trained_sides
from rewards.learning.aligning.policy import Policy
from rewards.learning.aligning.reference import Judgements, LogProbs, log_probs_of
from rewards.learning.aligning.sides import Unit
from rewards.learning.batches import Sizes
from rewards.learning.finetune import descend, in_memory, rate
from rewards.learning.intervals import of_share
from rewards.learning.pairs import in_order
from rewards.learning.progress import Count, Progress
from rewards.learning.resume_point import Place, State, resume, save_state, trained_parameters

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
        **_of_pairs(pairs, values, judged, config),
        "lengths": {"chosen": float(np.mean(chosen)), "rejected": float(np.mean(rejected)) if rejected else None},
    }


def _of_pairs(
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


MEASURED = ("loss", "margin", "reward_accuracy", "chosen_log_ratio", "rejected_log_ratio")
"""What a step adds up: the losses, and of pairs the implicit rewards and the log-ratios."""


@dataclass(frozen=True)
class Run:
    """The inputs of the loop. Only a checkpoint with the same `identity`, of settings and files, is resumed."""

    config: AlignConfig
    policy: Policy
    train: Judgements
    held_out: Judgements
    progress: Progress
    checkpoint: Path
    identity: str


def train_policy(run: Run) -> Place:
    """Trains the run's policy in place and returns where the loop ended.

    Raises:
        Diverged: the loss or the gradient is no longer finite.
        OutOfMemory: the smallest part of a step does not fit into memory.
    """
    config = run.config
    if config.activation_checkpointing:
        recompute_activations(run.policy.network)
    state = State(run.policy.network, make_optimizer(run.policy, config), Place(), {})
    if resume(run.checkpoint, state, identity=run.identity, progress=run.progress):
        run.progress.tell("resumed", step=state.place.step, epoch=state.place.epoch)
    place, sizes = state.place, sizes_of(run)
    total = total_steps(config, sizes)
    while place.step < total:
        batches = epoch_of(config, sizes, place.epoch)
        # A resumed run begins in the middle of an epoch, whose order follows from seed and epoch.
        for index in range(place.batch, min(len(batches), place.batch + total - place.step)):
            take_step(run, state, sizes, batches[index], steps=total)
            place.batch = index + 1
            if place.step % config.checkpoint_steps == 0:
                save_state(run.checkpoint, state, identity=run.identity)
        place.epoch, place.batch = place.epoch + 1, 0
        point: dict[str, Any] = {"step": place.step}
        if run.held_out.units:
            point |= measure(run.policy, run.held_out, config, progress=run.progress)
            place.curve.append(point)
        run.progress.tell("epoch", epoch=place.epoch, **point)
        save_state(run.checkpoint, state, identity=run.identity)
    return place


def take_step(run: Run, state: State, sizes: Sizes, units: Sequence[int], *, steps: int) -> None:
    """Takes one optimizer step on these units and writes it to the progress.

    Raises:
        Diverged: the loss or the gradient's norm is not finite; the weights are still those of the step before.
    """
    started = time.monotonic()
    config, place = run.config, state.place
    for group in state.optimizer.param_groups:
        group["lr"] = config.learning_rate * rate(config, place.step, steps)
    measured = in_memory(
        state,
        sizes,
        lambda: parts_of(run, place, sizes, units),
        lambda parts: _in_parts(run, state, parts, units),
        progress=run.progress,
    )
    norm = descend(state, measured[0], max_norm=config.max_grad_norm, remedy="lower learning_rate or beta")
    seconds = time.monotonic() - started
    tokens = sum(
        len(side.encoded.ids) for unit in units for side in trained_sides(run.train.units[unit], config.method)
    )
    place.seconds, place.tokens = place.seconds + seconds, place.tokens + tokens
    names = MEASURED[:1] if config.method in IMITATING else MEASURED
    run.progress.tell(
        "step",
        step=place.step,
        steps=steps,
        **dict(zip(names, measured.tolist(), strict=False)),
        grad_norm=norm.item(),
        tokens_per_second=round(tokens / seconds),
        padding_share=round(sizes.padding_share(parts_of(run, place, sizes, units)), 4),
    )


def parts_of(run: Run, place: Place, sizes: Sizes, units: Sequence[int]) -> list[list[int]]:
    """Returns what goes through the network at once: a whole step, unless it has to be cut."""
    return sizes.batches(units, place.micro_tokens or run.config.micro_tokens or sizes.tokens(units))


def _in_parts(run: Run, state: State, parts: Sequence[Sequence[int]], units: Sequence[int]) -> Tensor:
    config, train, policy = run.config, run.train, run.policy
    whole = max(1, divisor([train.units[unit] for unit in units], config.method))
    state.optimizer.zero_grad(set_to_none=True)
    measured = torch.zeros(len(MEASURED), device=policy.device)
    shares = distributed.share(parts)
    for number, (part, counted) in enumerate(shares, start=1):
        sharding.reduce_gradients(state.network, now=number == len(shares))
        own = [train.units[unit] for unit in part]
        log_probs = policy.log_probs([[side.encoded for side in trained_sides(unit, config.method)] for unit in own])
        values = [
            values
            for unit in part
            for values, _ in zip(train.reference[unit], trained_sides(train.units[unit], config.method), strict=False)
        ]
        reference = torch.from_numpy(np.concatenate(values)).to(log_probs.device)
        loss = total_loss(own, log_probs, reference, config) / whole * counted
        # FSDP averages gradients over the processes, while ours are to be summed.
        (loss * distributed.size()).backward()  # type: ignore[no-untyped-call]
        measured[0] += loss.detach()
        if config.method not in IMITATING and counted:
            ratios = (log_probs - reference).detach()
            chosen, rejected = response_sums(own, ratios)
            lengths = torch.tensor(
                [[max(1, len(side.learnt)) for side in unit.sides] for unit in own], device=ratios.device
            )
            margins = config.beta * (chosen - rejected)
            right = (margins > 0) + 0.5 * (margins == 0)
            per_token = (chosen / lengths[:, 0]).sum(), (rejected / lengths[:, 1]).sum()
            measured[1:] += torch.stack([margins.sum(), right.sum(), *per_token]) / len(units)
    return distributed.summed(measured)


def make_optimizer(policy: Policy, config: AlignConfig) -> torch.optim.AdamW:
    """Returns AdamW with two groups: matrices decay, vectors do not."""
    parameters = list(trained_parameters(policy.network).values())
    # Vectors are biases and the scales of norms, which decay would pull away from where the norm needs them.
    groups = [
        {"params": [p for p in parameters if p.ndim > 1], "weight_decay": config.weight_decay},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]
    fused = policy.device.type == "cuda"
    return torch.optim.AdamW([g for g in groups if g["params"]], lr=config.learning_rate, fused=fused)


def sizes_of(run: Run) -> Sizes:
    """Returns what each unit costs in a batch."""
    method = run.config.method
    return run.policy.sizes([[side.encoded for side in trained_sides(unit, method)] for unit in run.train.units])


def epoch_of(config: AlignConfig, sizes: Sizes, epoch: int) -> list[list[int]]:
    """Returns the optimizer steps of an epoch, each a list of units."""
    return sizes.epoch(batch_tokens=0, batch_size=config.batch_size, seed=config.seed, epoch=epoch)


def total_steps(config: AlignConfig, sizes: Sizes) -> int:
    """Returns the optimizer steps of the run."""
    steps = config.epochs * len(epoch_of(config, sizes, 0))
    return min(steps, config.max_steps) if config.max_steps else steps
