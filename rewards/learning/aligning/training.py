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
from rewards.learning.adapters import without_dropout
from rewards.learning.aligning.config import IMITATING, AlignConfig
from rewards.learning.aligning.objective import divisor, response_sums, total_loss, trained_sides
from rewards.learning.aligning.policy import Policy
from rewards.learning.aligning.reference import Judgements, LogProbs, log_probs_of
from rewards.learning.aligning.sides import Unit
from rewards.learning.batches import Sizes
from rewards.learning.finetune import Diverged, OutOfMemory, rate
from rewards.learning.intervals import of_share
from rewards.learning.pairs import in_order
from rewards.learning.progress import Count, Progress
from rewards.learning.resume_point import Place, StaleState, State, restore_state, save_state, trained_parameters

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
    prepare(run.policy, config)
    state = State(run.policy.network, make_optimizer(run.policy, config), Place(), {})
    _resume(run, state)
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
        _tell_epoch(run, place)
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
    measured = _gradients(run, state, sizes, units)
    parameters = list(trained_parameters(state.network).values())
    norm = sharding.whole(torch.nn.utils.clip_grad_norm_(parameters, config.max_grad_norm))
    # Checked before the step: one update with NaN would destroy the weights and the optimizer's moments for good.
    if not bool(torch.isfinite(measured[0]) & torch.isfinite(norm)):
        raise Diverged(f"the loss is no longer a number at step {place.step + 1}: lower learning_rate or beta")
    state.optimizer.step()
    place.losses.append(measured[0].item())
    seconds = time.monotonic() - started
    tokens = sum(
        len(side.encoded.ids) for unit in units for side in trained_sides(run.train.units[unit], config.method)
    )
    place.step, place.seconds, place.tokens = place.step + 1, place.seconds + seconds, place.tokens + tokens
    run.progress.tell(
        "step",
        step=place.step,
        steps=steps,
        **_named(measured, config),
        grad_norm=norm.item(),
        tokens_per_second=round(tokens / seconds),
        padding_share=round(sizes.padding_share(parts_of(run, place, sizes, units)), 4),
    )


def _gradients(run: Run, state: State, sizes: Sizes, units: Sequence[int]) -> Tensor:
    """Leaves the whole step's gradient on the parameters and returns what `MEASURED` names.

    When the parts of the step exceed the device's memory, they are halved and the step is computed again: the gradient
    does not depend on how the step is cut.
    """
    place = state.place
    while True:
        parts = parts_of(run, place, sizes, units)
        try:
            return _in_parts(run, state, parts, units)
        except torch.OutOfMemoryError as error:
            # With several processes the others wait in a collective call that this one has left: no way to go on.
            if distributed.size() > 1 or all(len(part) == 1 for part in parts):
                raise OutOfMemory(
                    "the device's memory does not hold one step: lower max_length or micro_tokens, or set "
                    "activation_checkpointing or lora_rank"
                ) from error
            place.micro_tokens = max(map(sizes.tokens, parts)) // 2
            # Cached blocks of the sizes that have just failed would leave no room for the smaller ones.
            torch.cuda.empty_cache()
            run.progress.tell("out_of_memory", micro_tokens=place.micro_tokens)


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
        reference = _reference(train, part, config.method, like=log_probs)
        loss = total_loss(own, log_probs, reference, config) / whole * counted
        # FSDP averages gradients over the processes, while ours are to be summed.
        (loss * distributed.size()).backward()  # type: ignore[no-untyped-call]
        measured[0] += loss.detach()
        if config.method not in IMITATING and counted:
            measured[1:] += _preferences(own, (log_probs - reference).detach(), config.beta) / len(units)
    return distributed.summed(measured)


def _reference(judged: Judgements, part: Sequence[int], method: str, *, like: Tensor) -> Tensor:
    """[learnt tokens of the trained sides]: the reference's log-probabilities."""
    values = [
        values
        for unit in part
        for values, _ in zip(judged.reference[unit], trained_sides(judged.units[unit], method), strict=False)
    ]
    return torch.from_numpy(np.concatenate(values)).to(like.device)


def _preferences(units: Sequence[Any], ratios: Tensor, beta: float) -> Tensor:
    """[4]: the sums over the pairs of margins, of right orders, and of the log-ratios per token of either side."""
    chosen, rejected = response_sums(units, ratios)
    lengths = torch.tensor([[max(1, len(side.learnt)) for side in unit.sides] for unit in units], device=ratios.device)
    margins = beta * (chosen - rejected)
    right = (margins > 0) + 0.5 * (margins == 0)
    per_token = (chosen / lengths[:, 0]).sum(), (rejected / lengths[:, 1]).sum()
    return torch.stack([margins.sum(), right.sum(), *per_token])


def _named(measured: Tensor, config: AlignConfig) -> dict[str, float]:
    names = MEASURED[:1] if config.method in IMITATING else MEASURED
    return dict(zip(names, measured.tolist(), strict=False))


def prepare(policy: Policy, config: AlignConfig) -> None:
    """Changes the network in place before the first step."""
    if config.activation_checkpointing:
        policy.network.activation_checkpointing_enable({"use_reentrant": False})
        # transformers recomputes activations in training mode only. That mode would switch dropout on, so its rates
        # are set to 0: without that a resumed run, which stores no random state, would differ from an unbroken one.
        policy.network.train()
        without_dropout(policy.network)


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


def _resume(run: Run, state: State) -> None:
    if not run.checkpoint.exists():
        return
    try:
        restore_state(run.checkpoint, state, identity=run.identity)
    except StaleState as error:
        run.progress.tell("checkpoint_refused", reason=str(error))
    else:
        run.progress.tell("resumed", step=state.place.step, epoch=state.place.epoch)


def _tell_epoch(run: Run, place: Place) -> None:
    if not run.held_out.units:
        run.progress.tell("epoch", epoch=place.epoch, step=place.step)
        return
    point = {"step": place.step, **measure(run.policy, run.held_out, run.config, progress=run.progress)}
    place.curve.append(point)
    run.progress.tell("epoch", epoch=place.epoch, **point)
