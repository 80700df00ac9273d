"""The fine-tuning loop trains head and backbone together from the ridge head on, and keeps each stage's best step.

Linear probing first and fine-tuning after it leaves the pretrained features less distorted (Kumar et al. 2022).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from rewards.learning import distributed, sharding
from rewards.learning.adapters import finish, prepare
from rewards.learning.answers import TuningRows
from rewards.learning.batches import Sizes
from rewards.learning.config import TrainConfig
from rewards.learning.inference import predict_all
from rewards.learning.model import Loaded
from rewards.learning.objectives import Objective, segment_loss, whole_loss
from rewards.learning.precision import trains_in_half
from rewards.learning.progress import Progress
from rewards.learning.refusals import Refused
from rewards.learning.resume_point import Place, State, resume, save_state, trained_parameters


class Diverged(Refused):
    """The loss or the gradient is no longer finite."""


class OutOfMemory(Refused):
    """Not even the smallest part of a step fits into the device's memory, or several processes ran out of it."""


@dataclass(frozen=True)
class TuningRun:
    """The inputs of the loop. Only a checkpoint with the same `identity`, configuration and snapshot, is resumed."""

    config: TrainConfig
    loaded: Loaded
    fit: TuningRows
    dev: TuningRows
    reward: tuple[float, ...]  # the attributes' weights in the scalar reward
    progress: Progress
    checkpoint: Path
    identity: str

    def objective(self, place: Place) -> Objective:
        return Objective(self.config.stages[place.stage], self.reward)


def fine_tune(run: TuningRun) -> Place:
    """Trains `run.loaded` in place and returns where the loop ended.

    Every stage leaves the network at its best step, which is listed in `place.kept`; step 0 means that the stage has
    not improved the network.

    Raises:
        Diverged: the loss or the gradient is no longer finite.
        OutOfMemory: the smallest part of a step does not fit into memory.
    """
    prepare(run.loaded.network, run.config)
    state = State(run.loaded.network, make_optimizer(run), Place(), {})
    if resume(run.checkpoint, state, identity=run.identity, progress=run.progress):
        run.progress.tell("resumed", stage=state.place.stage, step=state.place.step, epoch=state.place.epoch)
    for _ in range(state.place.stage, len(run.config.stages)):
        _stage(run, state)
        # The moments of the old optimizer belong to another loss and to other weights.
        place = state.place
        with torch.no_grad():
            for name, parameter in trained_parameters(state.network).items():
                if name in state.best:
                    parameter.copy_(state.best[name])
        place.kept.append(place.best_step)
        place.stage += 1
        if place.stage < len(run.config.stages):
            place.epoch = place.batch = place.step = place.best_step = place.stale = 0
            state.optimizer = make_optimizer(run)
            state.best = parameters_of(state)
    finish(run.loaded.network)
    return state.place


def _stage(run: TuningRun, state: State) -> None:
    config, place, sizes = run.config, state.place, run.loaded.sizes(run.fit.encoded, run.fit.units)
    total = total_steps(run, sizes)
    if place.step == 0:
        state.best = parameters_of(state)
        place.best_loss = dev_loss(run, place)
        if math.isnan(place.best_loss):
            return  # there is nothing to choose a step by
        _tell_dev(run, place, place.best_loss)
    while place.step < total and place.stale < config.patience:
        batches = _epoch(config, sizes, place.epoch)
        # A resumed run begins in the middle of an epoch, whose order follows from seed and epoch.
        for index in range(place.batch, min(len(batches), place.batch + total - place.step)):
            take_step(run, state, sizes, batches[index], steps=total)
            place.batch = index + 1
            if place.step % config.checkpoint_steps == 0:
                save_state(run.checkpoint, state, identity=run.identity)
        place.epoch, place.batch = place.epoch + 1, 0
        loss = dev_loss(run, place)
        if loss < place.best_loss:
            place.best_loss, place.best_step, place.stale = loss, place.step, 0
            state.best = parameters_of(state)
        else:
            place.stale += 1
        _tell_dev(run, place, loss)
        save_state(run.checkpoint, state, identity=run.identity)


def take_step(run: TuningRun, state: State, sizes: Sizes, units: Sequence[int], *, steps: int) -> None:
    """Takes one optimizer step on these units of the fit rows and writes it to the progress.

    Raises:
        Diverged: the loss or the gradient's norm is not finite; the weights are still those of the step before.
    """
    started = time.monotonic()
    config, place = run.config, state.place
    for group in state.optimizer.param_groups:
        group["lr"] = group["peak"] * rate(config, place.step, steps)
    whole_step = sizes.tokens(units) if config.batch_size else config.batch_tokens
    place.micro_tokens = place.micro_tokens or config.micro_tokens or whole_step
    loss = in_memory(
        state,
        sizes,
        lambda: sizes.batches(units, place.micro_tokens),
        lambda parts: _in_parts(run, state, parts, units),
        progress=run.progress,
    )
    norm = descend(state, loss, max_norm=config.max_grad_norm, remedy="lower learning_rate")
    seconds = time.monotonic() - started
    place.seconds += seconds
    place.tokens += (tokens := sum(len(run.fit.encoded[row].ids) for row in _rows(run.fit, units)))
    run.progress.tell(
        "step",
        stage=config.stages[place.stage],
        step=len(place.losses),  # of all stages
        steps=steps * len(config.stages),
        loss=loss.item(),
        grad_norm=norm.item(),
        tokens_per_second=round(tokens / seconds),
        padding_share=round(sizes.padding_share(sizes.batches(units, place.micro_tokens)), 4),
        **model_flops_utilization(run.loaded, sizes.tokens(units), seconds),
    )


def descend(state: State, loss: Tensor, *, max_norm: float, remedy: str) -> Tensor:
    """Takes the optimizer's step with the gradient that stands on the parameters, and returns the gradient's norm.

    Raises:
        Diverged: the loss or the norm is not finite; the weights are still those of the step before.
    """
    parameters = list(trained_parameters(state.network).values())
    norm = sharding.whole(torch.nn.utils.clip_grad_norm_(parameters, max_norm))
    # Checked before the step: one update with NaN would destroy the weights and the optimizer's moments for good.
    if not bool(torch.isfinite(loss) & torch.isfinite(norm)):
        raise Diverged(f"the loss is no longer a number at step {state.place.step + 1}: {remedy}")
    state.optimizer.step()
    state.place.losses.append(loss.item())
    state.place.step += 1
    return norm


def in_memory(
    state: State,
    sizes: Sizes,
    parts_now: Callable[[], Sequence[Sequence[int]]],
    compute: Callable[[Sequence[Sequence[int]]], Tensor],
    *,
    progress: Progress,
) -> Tensor:
    """Returns what `compute` returns of the parts of a step, whose whole gradient it leaves on the parameters.

    When the parts exceed the device's memory, they are halved and the step is computed again: the gradient does not
    depend on how the step is cut.
    """
    place = state.place
    while True:
        parts = parts_now()
        try:
            return compute(parts)
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
            progress.tell("out_of_memory", micro_tokens=place.micro_tokens)


def _in_parts(run: TuningRun, state: State, parts: Sequence[Sequence[int]], units: Sequence[int]) -> Tensor:
    fit, objective, network = run.fit, run.objective(state.place), run.loaded.network
    device = run.loaded.device
    # Sums are divided by the counts of the whole step, not of the part: a mean of the parts' means would weigh labels
    # by the part that they happen to be in, and depend on how the step is cut.
    of_step = fit.answers.of_rows(_rows(fit, units))
    counts, segment_labels = objective.counts(of_step), of_step.segments.known() if of_step.segments else 0
    state.optimizer.zero_grad(set_to_none=True)
    total = torch.zeros((), device=device)
    shares = distributed.share(parts)
    for number, (part, counted) in enumerate(shares, start=1):
        sharding.reduce_gradients(network, now=number == len(shares))
        groups = [[fit.encoded[row] for row in fit.units[unit]] for unit in part]
        # The master weights stay in fp32, as bf16 weights lose small updates; only the pass is in bf16.
        answers, of_segments = fit.answers.of_rows(_rows(fit, part)), None
        with torch.autocast(device.type, torch.bfloat16, enabled=trains_in_half(run.loaded, run.config.precision)):
            if answers.segments is None:
                scores = network(run.loaded.arranged(groups))
            else:
                scores, of_segments = network.both(run.loaded.arranged(groups))
        loss = objective.loss(scores, answers, counts)
        if of_segments is not None and answers.segments is not None:
            loss = loss + run.config.segment_weight * segment_loss(of_segments, answers.segments, segment_labels)
        loss = loss * counted
        # FSDP averages gradients over the processes, while ours are to be summed.
        (loss * distributed.size()).backward()  # type: ignore[no-untyped-call]
        total += loss.detach()
    return distributed.summed(total)


class Schedule(Protocol):
    """The settings that say how the learning rate changes over the steps."""

    @property
    def warmup_steps(self) -> int: ...
    @property
    def schedule(self) -> str: ...


def rate(config: Schedule, step: int, steps: int) -> float:
    """Returns the share of the peak learning rate at a step: warm-up, then constant or half a cosine down to 0."""
    warm = min(1.0, (step + 1) / max(1, config.warmup_steps))
    if config.schedule == "constant":
        return warm
    past = max(0, step - config.warmup_steps) / max(1, steps - config.warmup_steps)
    return warm * (1 + math.cos(math.pi * past)) / 2


def make_optimizer(run: TuningRun) -> torch.optim.AdamW:
    """Returns AdamW with three groups: the backbone's matrices decay, its vectors do not, the heads have a rate."""
    config, network = run.config, run.loaded.network
    heads = [*network.head.parameters(), *(network.segment_head.parameters() if network.segment_head else ())]
    head = {id(p) for p in heads}
    backbone = [p for p in trained_parameters(network).values() if id(p) not in head]
    # Vectors are biases and the scales of norms, which decay would pull away from where the norm needs them.
    matrices, vectors = [p for p in backbone if p.ndim > 1], [p for p in backbone if p.ndim < 2]
    rate, decay = config.learning_rate, config.weight_decay
    groups = [
        {"params": matrices, "peak": rate, "weight_decay": decay},
        {"params": vectors, "peak": rate, "weight_decay": 0.0},
        {"params": heads, "peak": config.head_learning_rate, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW([g for g in groups if g["params"]], lr=rate, fused=run.loaded.device.type == "cuda")


def total_steps(run: TuningRun, sizes: Sizes) -> int:
    """Returns the optimizer steps of one stage."""
    # Epochs are counted one by one: packed batches of another order may be another number.
    steps = sum(len(_epoch(run.config, sizes, epoch)) for epoch in range(run.config.epochs))
    return min(steps, run.config.max_steps) if run.config.max_steps else steps


def dev_loss(run: TuningRun, place: Place) -> float:
    """Returns the stage's loss over all dev rows at once; NaN where they have no answers."""
    if not run.dev.encoded:
        return math.nan
    batch_tokens, weight = run.config.batch_tokens, run.config.segment_weight
    predicted = predict_all(run.loaded, run.dev.encoded, batch_tokens=batch_tokens, progress=run.progress)
    return whole_loss(run.objective(place), predicted, run.dev.answers, segment_weight=weight)


def parameters_of(state: State) -> dict[str, Tensor]:
    """Returns a copy of the trained parameters by name."""
    return {name: parameter.detach().clone() for name, parameter in trained_parameters(state.network).items()}


def _epoch(config: TrainConfig, sizes: Sizes, epoch: int) -> list[list[int]]:
    return sizes.epoch(batch_tokens=config.batch_tokens, batch_size=config.batch_size, seed=config.seed, epoch=epoch)


def _rows(rows: TuningRows, units: Sequence[int]) -> list[int]:
    return [row for unit in units for row in rows.units[unit]]


def _tell_dev(run: TuningRun, place: Place, loss: float) -> None:
    # Steps count over all stages, as the losses do.
    point = {"stage": run.config.stages[place.stage], "step": len(place.losses), "validation_loss": loss}
    place.curve.append(point)
    run.progress.tell("epoch", epoch=place.epoch, best_step=place.best_step, **point)


# Floating-point operations -----------------------------------------------------------------------------------


# Dense bf16 operations a second, from the makers' data sheets.
PEAKS = {"H100": 989e12, "H200": 989e12, "A100": 312e12, "L40S": 362e12, "B200": 2250e12}


def model_flops_utilization(loaded: Loaded, tokens: int, seconds: float) -> dict[str, float]:
    """Returns {"mfu": share of the peak} on a GPU whose peak is known, else nothing.

    Counts 6 operations for each trained weight and token (arXiv 2204.02311, appendix B) and 4 for each frozen one,
    which gets no gradient; attention and recomputation do not count. tokens: those that were computed, each once;
    seconds: the time of the step.
    """
    if loaded.device.type != "cuda":
        return {}
    name = torch.cuda.get_device_name(loaded.device)
    peak = next((peak for known, peak in PEAKS.items() if known in name), None)
    if peak is None:
        return {}
    operations = operations_per_token(loaded.network.network)
    return {"mfu": round(operations * tokens / seconds / peak / distributed.size(), 4)}


def operations_per_token(network: Any) -> int:
    """Returns how many operations the forward and the backward pass of a model of transformers need for a token."""
    # Embeddings are looked up, not multiplied.
    embeddings = {id(p) for p in network.get_input_embeddings().parameters()}
    weights = [p for p in network.parameters() if id(p) not in embeddings]
    return sum((6 if p.requires_grad else 4) * p.numel() for p in weights)
