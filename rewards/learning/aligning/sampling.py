"""Lets a policy answer prompts, to see what it says, how long, and how far it has moved from its reference."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from transformers import GenerationConfig

from rewards.learning import distributed
from rewards.learning.aligning.align_config import AlignConfig
from rewards.learning.aligning.judged_rows import Row
from rewards.learning.aligning.policy import Policy
from rewards.learning.aligning.reference import LogProbs, log_probs_of
from rewards.learning.aligning.sides import Side, Unit
from rewards.learning.aligning.steering import conditioned
from rewards.learning.data import Item, Turn
from rewards.learning.encoding import Encoded
from rewards.learning.intervals import by_prompt
from rewards.learning.progress import Count, Progress

AT_ONCE = 16
"""Prompts that are answered together."""
Measures = dict[str, Any]


@dataclass(frozen=True)
class Sample:
    """An answer of the policy; `ended` says that the policy ended it, rather than the limit."""

    conversation: tuple[Turn, ...]
    text: str
    unit: Unit
    ended: bool


def sampled_prompts(rows: Sequence[Row], config: AlignConfig, levels: dict[str, int]) -> list[tuple[Turn, ...]]:
    """Returns the first distinct prompts of the rows, as many as are configured, with the requested levels."""
    prompts = {row.prompt: conditioned(row.conversation, levels) for row in rows}
    return list(prompts.values())[: config.samples]


def answers(
    policy: Policy, prompts: Sequence[tuple[Turn, ...]], config: AlignConfig, *, progress: Progress | None = None
) -> list[Sample]:
    """Returns an answer to each prompt, drawn token by token at temperature 1 with the configured seed."""
    policy.unpack()
    torch.manual_seed(config.seed)
    samples: list[Sample] = []
    count = Count("answer", len(prompts), progress)
    for start in range(0, len(prompts), AT_ONCE):
        asked = prompts[start : start + AT_ONCE]
        samples += _answers(policy, asked, config)
        count.add(len(asked))
    return samples


@torch.no_grad()
def _answers(policy: Policy, prompts: Sequence[tuple[Turn, ...]], config: AlignConfig) -> list[Sample]:
    room = min(config.sample_tokens, policy.frame.max_length - 1)
    tokens = [prompt_tokens(policy, prompt, room) for prompt in prompts]
    width = max(map(len, tokens))
    tokenizer = policy.frame.tokenizer
    located = policy.frame.locate(Item("", (Turn("user", "a"),), "a"))
    after = zip(located.encoded.ids[located.encoded.response_start :], located.spans, strict=True)
    # A line break may close a turn too, but answers hold others.
    closing = [token for token, (start, _) in after if start >= 1 and token in tokenizer.all_special_ids]
    ends = list(dict.fromkeys([tokenizer.eos_token_id, *closing[:1]]))
    # On the left, so that every answer begins in the same column.
    ids = torch.tensor([[ends[0]] * (width - len(own)) + own for own in tokens], device=policy.device)
    mask = torch.tensor([[0] * (width - len(own)) + [1] * len(own) for own in tokens], device=policy.device)
    drawn = GenerationConfig(
        do_sample=True, temperature=1.0, top_k=0, top_p=1.0, repetition_penalty=1.0,
        max_new_tokens=room, eos_token_id=ends, pad_token_id=ends[0],
    )  # type: ignore[no-untyped-call]  # fmt: skip
    policy.network.eval()
    with torch.autocast(policy.device.type, torch.bfloat16, enabled=policy.half):
        rows = policy.network.generate(
            input_ids=ids, attention_mask=mask, generation_config=drawn, synced_gpus=distributed.size() > 1
        )[:, width:].tolist()
    # Of several processes each draws; the first one's answers count.
    rows = distributed.agreed(rows)
    return [_sample(policy, *parts, ends) for parts in zip(prompts, tokens, rows, strict=True)]


def _sample(policy: Policy, prompt: tuple[Turn, ...], tokens: list[int], row: list[int], ends: list[int]) -> Sample:
    length = next((place + 1 for place, token in enumerate(row) if token in ends), len(row))
    encoded = Encoded((*tokens, *row[:length]), len(tokens), length, 0, 0)
    side = Side(encoded, (0,) * length, (1.0,))
    text = policy.frame.tokenizer.decode(row[:length], skip_special_tokens=True)
    # Every prompt is answered once, so its text tells it apart.
    return Sample(prompt, text, Unit(repr(prompt), side, None), row[length - 1] in ends)


def prompt_tokens(policy: Policy, prompt: tuple[Turn, ...], room: int) -> list[int]:
    """Returns the tokens after which the policy answers, as training has them; a long prompt loses its beginning."""
    item, most = Item("", prompt, "a"), policy.frame.max_length - room
    encoded = policy.frame.encode(item)
    if encoded.response_start > most:
        # Cut as training cuts it, by whole turns; the answer's place in the limit is the letter's here.
        frame = replace(policy.frame, max_length=most + len(encoded.ids) - encoded.response_start)
        encoded = frame.encode(item)
    return list(encoded.ids[: encoded.response_start])


def sampled_log_probs(policy: Policy, samples: Sequence[Sample]) -> list[LogProbs]:
    """Returns for each answer the log-probabilities of its tokens."""
    return [values[0] for values in log_probs_of(policy, [sample.unit for sample in samples])]


def sampled_measures(
    samples: Sequence[Sample], policy: Sequence[LogProbs], reference: Callable[[], Sequence[LogProbs]]
) -> Measures | None:
    """Returns the divergence from the reference per token of the policy's own answers, and the answers' length.

    KL(pi || pi_ref) is estimated as the mean of exp(-d) - 1 + d over tokens that pi has drawn, with d = log pi - log
    pi_ref: without bias and, unlike the mean of d, never below 0 (Schulman 2020, "Approximating KL divergence", k3).
    policy and reference hold the log-probabilities of each answer's tokens.
    """
    if not samples:
        return None
    ratios = [own.astype(np.float64) - other for own, other in zip(policy, reference(), strict=True)]
    sums = np.array([(np.expm1(-ratio) + ratio).sum() for ratio in ratios])
    lengths = np.array([len(ratio) for ratio in ratios])
    intervals = by_prompt(
        [sample.unit.prompt for sample in samples],
        lambda weights: {"kl_per_token": float((sums * weights).sum() / max(1.0, float((lengths * weights).sum())))},
    )
    return {
        "prompts": len(samples),
        "tokens": int(lengths.sum()),
        "kl_per_token": float(sums.sum() / max(1, lengths.sum())),
        "intervals": intervals,
        "length": float(np.mean([sample.unit.chosen.encoded.response_tokens for sample in samples])),
        "ended": float(np.mean([sample.ended for sample in samples])),
    }
