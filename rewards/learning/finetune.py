"""The fine-tuning loop: head and backbone together, from the ridge head on, the best step kept.

Linear probing first and fine-tuning after it leaves the pretrained features less distorted (Kumar et al. 2022).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from rewards.learning.batches import padding_share, shuffled_batches
from rewards.learning.config import TrainConfig
from rewards.learning.data import Floats
from rewards.learning.encoding import Encoded
from rewards.learning.inference import predict
from rewards.learning.losses import masked_mse
from rewards.learning.model import Loaded
from rewards.learning.progress import Progress
from rewards.learning.refusals import Refused
from rewards.learning.resuming import Place, StaleState, State, restore_state, save_state


class Diverged(Refused):
    """The loss or the gradient is no longer a number."""


@dataclass(frozen=True)
class Rows:
    """Encoded responses and their targets [rows, attributes], NaN where a label is missing."""

    encoded: Sequence[Encoded]
    targets: Floats

    @property
    def lengths(self) -> list[int]:
        return [len(e.ids) for e in self.encoded]


@dataclass(frozen=True)
class Run:
    """What the loop works on. `identity` names configuration and snapshot: only such a state is resumed."""

    config: TrainConfig
    loaded: Loaded
    fit: Rows
    dev: Rows
    progress: Progress
    checkpoint: Path
    identity: str


def fine_tune(run: Run) -> Place:
    """Trains `run.loaded` in place and leaves it at its best step, which may be 0: the ridge head it came with."""
    config, network, total = run.config, run.loaded.network, total_steps(run)
    if not total:
        return Place()
    state = State(network, make_optimizer(run), Place(), parameters_of(network))
    _resume(run, state)
    place = state.place
    if place.step == 0:
        place.best_loss = dev_loss(run)
        place.curve.append({"step": 0, "validation_loss": place.best_loss})
    while place.step < total and place.stale < config.patience:
        batches = shuffled_batches(run.fit.lengths, config.batch_tokens, seed=config.seed, epoch=place.epoch)
        for index in range(place.batch, min(len(batches), place.batch + total - place.step)):
            take_step(run, state, batches[index], steps=total)
            place.batch = index + 1
            if place.step % config.checkpoint_steps == 0:
                save_state(run.checkpoint, state, identity=run.identity)
        place.epoch, place.batch = place.epoch + 1, 0
        _judge(run, state)
        save_state(run.checkpoint, state, identity=run.identity)
    _restore_best(state)
    return place


def take_step(run: Run, state: State, batch: list[int], *, steps: int) -> None:
    """One optimizer step on one batch of row indices, told as an event."""
    started = time.monotonic()
    config, network, place = run.config, run.loaded.network, state.place
    for group in state.optimizer.param_groups:
        group["lr"] = group["peak"] * min(1.0, (place.step + 1) / max(1, config.warmup_steps))
    rows = run.loaded.collate([run.fit.encoded[i] for i in batch])
    targets = torch.tensor(run.fit.targets[batch], dtype=torch.float32, device=run.loaded.device)
    with torch.autocast(run.loaded.device.type, torch.bfloat16, enabled=run.loaded.device.type == "cuda"):
        features = network.features(rows)  # [batch, features], fp32 as the head is
    loss = masked_mse(network.head(features), targets)
    state.optimizer.zero_grad(set_to_none=True)
    loss.backward()  # type: ignore[no-untyped-call]
    norm = torch.nn.utils.clip_grad_norm_(network.parameters(), config.max_grad_norm)
    _refuse_nan(loss, norm, place.step)
    state.optimizer.step()
    seconds, tokens = time.monotonic() - started, sum(run.fit.lengths[i] for i in batch)
    place.step, place.seconds, place.tokens = place.step + 1, place.seconds + seconds, place.tokens + tokens
    place.losses.append(loss.item())
    run.progress.tell(
        "step",
        step=place.step,
        steps=steps,
        loss=loss.item(),
        grad_norm=norm.item(),
        tokens_per_second=round(tokens / seconds),
        padding_share=round(padding_share(run.fit.lengths, [batch]), 4),
    )


def make_optimizer(run: Run) -> torch.optim.AdamW:
    """AdamW in three groups: matrices of the backbone decay, its vectors do not, the head has a rate of its own."""
    config, network = run.config, run.loaded.network
    head = {id(p) for p in network.head.parameters()}
    backbone = [p for p in network.parameters() if id(p) not in head]
    matrices, vectors = [p for p in backbone if p.ndim > 1], [p for p in backbone if p.ndim < 2]
    rate, decay = config.learning_rate, config.weight_decay
    groups = [
        {"params": matrices, "peak": rate, "weight_decay": decay},
        {"params": vectors, "peak": rate, "weight_decay": 0.0},
        {"params": list(network.head.parameters()), "peak": config.head_learning_rate, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=config.learning_rate, fused=run.loaded.device.type == "cuda")


def total_steps(run: Run) -> int:
    """Batches are the same in every epoch, only their order differs; without dev rows there is nothing to choose by."""
    config = run.config
    if not np.isfinite(run.dev.targets).any():
        return 0
    steps = config.epochs * len(shuffled_batches(run.fit.lengths, config.batch_tokens, seed=config.seed, epoch=0))
    return min(steps, config.max_steps) if config.max_steps else steps


def dev_loss(run: Run) -> float:
    """Mean squared error over all labels of the dev rows."""
    predicted = predict(run.loaded, run.dev.encoded, batch_tokens=run.config.batch_tokens)
    return float(np.nanmean((predicted - run.dev.targets) ** 2))


def parameters_of(network: nn.Module) -> dict[str, Tensor]:
    return {name: parameter.detach().clone() for name, parameter in network.named_parameters()}


def _judge(run: Run, state: State) -> None:
    place, network = state.place, state.network
    loss = dev_loss(run)
    place.curve.append({"step": place.step, "validation_loss": loss})
    if loss < place.best_loss:
        place.best_loss, place.best_step, place.stale = loss, place.step, 0
        state.best = parameters_of(network)
    else:
        place.stale += 1
    run.progress.tell("epoch", epoch=place.epoch, step=place.step, validation_loss=loss, best_step=place.best_step)


def _resume(run: Run, state: State) -> None:
    if not run.checkpoint.exists():
        return
    try:
        restore_state(run.checkpoint, state, identity=run.identity)
    except StaleState as error:
        run.progress.tell("checkpoint_refused", reason=str(error))
    else:
        run.progress.tell("resumed", step=state.place.step, epoch=state.place.epoch)


def _restore_best(state: State) -> None:
    with torch.no_grad():
        for name, parameter in state.network.named_parameters():
            parameter.copy_(state.best[name])


def _refuse_nan(loss: Tensor, norm: Tensor, step: int) -> None:
    if not bool(torch.isfinite(loss) & torch.isfinite(norm)):
        raise Diverged(f"the loss is no longer a number at step {step + 1}: lower learning_rate")
