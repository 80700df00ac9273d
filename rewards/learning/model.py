"""The reward model: a backbone, pooling by the mask, and one linear head in fp32 for all attributes.

A second head, where there are segments to learn from, gives each of them a score for each aspect.

An encoder is an AutoModel with our head: no class of transformers pools a BERT by its mean. A decoder is a plain
AutoModelForSequenceClassification, so that other software loads what we store.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from rewards.learning import distributed
from rewards.learning.batches import Sizes
from rewards.learning.encoding import (
    Encoded,
    Frame,
)
from rewards.learning.packing import (
    ATTENTION,
    PROBE,
    Packed,
    SegmentTokens,
    by_prompt,
    causal_mask,
    may_pack,
    pack,
    packed_hidden,
    packed_length,
    places_of,
    segment_means,
    segment_tokens,
)
from rewards.learning.sharding import like

ENCODER, DECODER = "mean+length", "last"  # the two ways to pool, as a manifest names them


@dataclass(frozen=True)
class Batch:
    """Padded items: ids, mask and response are [batch, length], response_tokens [batch] in fp32.

    `mask` is 1 for real tokens and `response` for those of the response. `segments` says where the tokens of the items'
    segments are, None where they have none.
    """

    ids: Tensor
    mask: Tensor
    response: Tensor
    response_tokens: Tensor
    segments: SegmentTokens | None = None


def collate(encoded: Sequence[Encoded], *, pad: int, device: torch.device, left: bool = False, width: int = 0) -> Batch:
    """Pads the items with the token `pad` to `width` or to the length of the longest one, right or left."""
    width = max(width, *(len(e.ids) for e in encoded))
    ids = torch.full((len(encoded), width), pad)
    mask, response = torch.zeros_like(ids), torch.zeros_like(ids)
    places: list[list[int]] = []
    for row, e in enumerate(encoded):
        start = width - len(e.ids) if left else 0
        ids[row, start : start + len(e.ids)] = torch.tensor(e.ids)
        mask[row, start : start + len(e.ids)] = 1
        response[row, start + e.response_start : start + len(e.ids)] = 1
        places += places_of(e.segments, own=row * width + start)
    counts = torch.tensor([e.response_tokens for e in encoded], dtype=torch.float32)
    segments = segment_tokens(places, device=device)
    return Batch(ids.to(device), mask.to(device), response.to(device), counts.to(device), segments)


Input = Batch | Packed


class EncoderReward(nn.Module):
    """Pools an encoder: means over the response's tokens and over the prompt's, and the response's length.

    The length is a feature of its own because a mean forgets it.
    """

    pooling = ENCODER
    packs = False

    def __init__(self, network: Any, *, outputs: int) -> None:
        super().__init__()
        self.network = network
        width = network.config.hidden_size
        self.blocks = (width, width, 1)
        self.head = nn.Linear(sum(self.blocks), outputs)
        self.segment_head: nn.Linear | None = None

    def features(self, batch: Input) -> Tensor:
        """Returns what `pooled` does; may be called of a sharded network, as `forward` may."""
        return self.pooled(batch)

    def both_features(self, batch: Input) -> tuple[Tensor, Tensor]:
        """Returns the features of the responses, and [segments, hidden] those of their segments, both in fp32."""
        states = self.states(batch)
        return self.of_responses(states, batch), segment_means(states.flatten(0, 1), batch.segments)

    def states(self, batch: Input) -> Tensor:
        """[batch, length, hidden] in fp32, as a mean over hundreds of tokens in bf16 loses its last digits."""
        assert isinstance(batch, Batch)
        states: Tensor = self.network(input_ids=batch.ids, attention_mask=batch.mask).last_hidden_state
        return states.float()

    def pooled(self, batch: Input) -> Tensor:
        """[batch, 2 * hidden + 1] in fp32; what padding holds has no influence."""
        return self.of_responses(self.states(batch), batch)

    def of_responses(self, hidden: Tensor, batch: Input) -> Tensor:
        """[batch, 2 * hidden + 1]: the features of the responses, pooled from hidden [batch, length, hidden]."""
        assert isinstance(batch, Batch)
        response = masked_mean(hidden, batch.response)  # [batch, hidden]
        prompt = masked_mean(hidden, batch.mask - batch.response)
        # The logarithm keeps one long response from dominating the column.
        length = torch.log1p(batch.response_tokens)[:, None]  # [batch, 1]
        return torch.cat([response, prompt, length], dim=1)

    def forward(self, batch: Input) -> Tensor:
        return in_fp32(self.head, self.features(batch))

    def both(self, batch: Input) -> tuple[Tensor, Tensor]:
        """Returns the scores [batch, attributes], and those of the segments [segments, aspects]."""
        return both_scores(self, batch)

    def set_head(self, weight: Tensor, bias: Tensor, constant: Tensor) -> None:
        with torch.no_grad():
            self.head.weight.copy_(like(weight.float(), self.head.weight))
            self.head.bias.copy_(like(bias.float(), self.head.bias))


class DecoderReward(nn.Module):
    """Pools a decoder: the hidden state of the last real token, which the mask finds.

    Looking for the pad id, as transformers does, finds the token before the end where pad equals end of text. Packed
    rows are read where the architecture allows it (`packs`), padded ones always.
    """

    pooling = DECODER

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.network = network
        self.packs = False
        self.blocks = (network.config.get_text_config().hidden_size,)
        self.segment_head: nn.Linear | None = None

    @property
    def head(self) -> nn.Linear:
        head: nn.Linear = self.network.score
        return head

    def try_packing(self) -> None:
        """Lets the network read packed rows if it gives the same for them as for separate ones.

        It is tried on a few tokens, as architectures differ.
        """
        if not may_pack(self.network):
            return
        device, former = self.head.weight.device, self.network.config._attn_implementation
        apart = torch.cat([self.features(collate([item], pad=0, device=device)) for item in PROBE])
        self.network.set_attn_implementation(ATTENTION)
        try:
            together = self.features(pack([PROBE], device=device))
        except (TypeError, RuntimeError, ValueError):
            together = apart + torch.inf  # an architecture that cannot even run packed
        self.packs = distributed.agreed(torch.allclose(apart, together, atol=1e-4, rtol=1e-3))
        if not self.packs:
            self.network.set_attn_implementation(former)

    def features(self, batch: Input) -> Tensor:
        """Returns what `pooled` does; may be called of a sharded network, as `forward` may."""
        return self.pooled(batch)

    def both_features(self, batch: Input) -> tuple[Tensor, Tensor]:
        """Returns the features of the responses, and [segments, hidden] those of their segments, both in fp32."""
        states = self.states(batch)
        return self.of_responses(states, batch), segment_means(states.flatten(0, -2).float(), batch.segments)

    def states(self, batch: Input) -> Tensor:
        """[tokens, hidden] of a packed row, as the network gives them; else [batch, length, hidden] in fp32."""
        if isinstance(batch, Packed):
            return packed_hidden(self.network, batch)
        # Positions count real tokens, so that padding on the left moves none of them. [batch, length]
        positions = (batch.mask.cumsum(dim=1) - 1).clamp(min=0)
        # transformers builds no mask for an attention function that is not its own, so it is given a finished one.
        mask = causal_mask(batch.mask) if self.packs else batch.mask
        output = self.network.base_model(
            input_ids=batch.ids, attention_mask=mask, position_ids=positions, use_cache=False
        )
        hidden: Tensor = output.last_hidden_state.float()
        return hidden

    def pooled(self, batch: Input) -> Tensor:
        """[items, hidden] in fp32."""
        return self.of_responses(self.states(batch), batch)

    def of_responses(self, hidden: Tensor, batch: Input) -> Tensor:
        """[items, hidden] in fp32: the features of the responses, out of the states that `states` returns."""
        if isinstance(batch, Packed):
            return hidden[batch.last].float()
        return hidden[torch.arange(len(hidden), device=hidden.device), last_real(batch.mask)]

    def forward(self, batch: Input) -> Tensor:
        return in_fp32(self.head, self.features(batch))

    def both(self, batch: Input) -> tuple[Tensor, Tensor]:
        """Returns the scores [items, attributes], and those of the segments [segments, aspects]."""
        return both_scores(self, batch)

    def set_head(self, weight: Tensor, bias: Tensor, constant: Tensor) -> None:
        """Sets the head to weight [attributes, hidden] and bias [attributes].

        The head of these classes has no bias, so it is added along `constant` [hidden], the direction whose product
        with the features is 1.
        """
        with torch.no_grad():
            combined = weight + bias[:, None] * constant[None, :]
            self.head.weight.copy_(like(combined.float(), self.head.weight))


RewardNetwork = EncoderReward | DecoderReward
SHARDED = ("features", "both_features", "both")
"""The methods that may be called of a sharded network, besides `forward`."""


def both_scores(network: RewardNetwork, batch: Input) -> tuple[Tensor, Tensor]:
    """Returns the scores of the items, and of their segments, from one pass; the network has both heads."""
    assert network.segment_head is not None
    features, of_segments = network.both_features(batch)
    return in_fp32(network.head, features), in_fp32(network.segment_head, of_segments)


def set_segment_head(network: RewardNetwork, weight: Tensor, bias: Tensor) -> None:
    """Sets the segments' head to weight [aspects, hidden] and bias [aspects]."""
    head = network.segment_head
    assert head is not None
    with torch.no_grad():
        head.weight.copy_(like(weight.float(), head.weight))
        head.bias.copy_(like(bias.float(), head.bias))


@dataclass(frozen=True)
class Loaded:
    """A network with the frame that turns text into its input.

    `half` says that features and scores are computed in bf16, though the weights are in fp32 (see `precision`).
    """

    network: RewardNetwork
    frame: Frame
    half: bool = False

    @property
    def device(self) -> torch.device:
        return self.network.head.weight.device

    @property
    def scores_segments(self) -> bool:
        """Whether the network has a head for segments."""
        return self.network.segment_head is not None

    def rounding(self) -> torch.autocast:
        """Returns the context in which features and scores are computed: autocast in bf16 where `half` is set."""
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.half)

    def collate(self, encoded: Sequence[Encoded], *, step: int = 1) -> Batch:
        """Pads the items on the network's device, to a width that is a multiple of `step` or the token limit."""
        width = min(stepped(max(len(e.ids) for e in encoded), step), self.frame.max_length)
        return collate(encoded, pad=self.frame.tokenizer.pad_token_id, device=self.device, width=width)

    def arranged(self, groups: Sequence[Sequence[Encoded]], *, step: int = 1) -> Input:
        """Returns the items of the groups in their order, packed where the network can read that, else padded."""
        if self.network.packs:
            return pack(groups, device=self.device)
        return self.collate([item for group in groups for item in group], step=step)

    def sizes(self, encoded: Sequence[Encoded], units: Sequence[Sequence[int]]) -> Sizes:
        """Returns what each unit, a list of rows, costs in a batch."""
        groups = [[encoded[row] for row in unit] for unit in units]
        rows = [len(group) for group in groups]
        if self.network.packs:
            packed = [packed_length(group) for group in groups]
            return Sizes(packed, rows, packed, padded=False)
        widths = [max(len(item.ids) for item in group) for group in groups]
        return Sizes(widths, rows, [sum(len(item.ids) for item in group) for group in groups], padded=True)

    def batches(self, encoded: Sequence[Encoded], budget: int, *, step: int = 1) -> list[list[list[int]]]:
        """Returns the rows in batches of at most `budget` tokens, each a list of groups.

        A group shares its prompt where the network reads packed rows; else it is a single row. With a `step` of more
        than one token, padded rows share a batch only if each of them alone would be padded to the same width.
        """
        if self.network.packs:
            units = by_prompt(encoded, budget)
            batches = self.sizes(encoded, units).batches(range(len(units)), budget)
            return [[units[unit] for unit in batch] for batch in batches]
        sizes = self.sizes(encoded, [[row] for row in range(len(encoded))])
        alike: dict[int, list[int]] = {}
        for row, item in enumerate(encoded):
            alike.setdefault(stepped(len(item.ids), step) if step > 1 else 0, []).append(row)
        return [[[row] for row in batch] for _, rows in sorted(alike.items()) for batch in sizes.batches(rows, budget)]


def stepped(length: int, step: int) -> int:
    """Returns the length, rounded up to a multiple of `step`."""
    return -(-length // step) * step


def in_fp32(head: nn.Linear, features: Tensor) -> Tensor:
    """[batch, attributes]: the scores of features [batch, features], computed in fp32."""
    # Near 3 bf16 has a step of 0.016: responses would tie that do not.
    with torch.autocast(features.device.type, enabled=False):
        scores: Tensor = head(features.float())
    return scores


def last_real(mask: Tensor) -> Tensor:
    """[batch]: the index of each row's last real token, on whichever side the padding is; mask [batch, length]."""
    positions = torch.arange(mask.shape[1], device=mask.device)
    return (positions * mask).argmax(dim=1)


def masked_mean(hidden: Tensor, mask: Tensor) -> Tensor:
    """[batch, hidden]: the mean of hidden [batch, length, hidden] over the positions where mask [batch, length] is 1.

    It is zero where there is none.
    """
    # Filled, not multiplied: an infinity or NaN at a padded position times 0 would still be NaN.
    kept = hidden.masked_fill(mask[:, :, None] == 0, 0.0)
    return kept.sum(dim=1) / mask.sum(dim=1, keepdim=True).clamp(min=1)
