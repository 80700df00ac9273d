"""Packs sequences into one row without padding; those that begin alike share their beginning.

A task's responses share one pass over the prompt. Attention is told which tokens each stretch may see, and positions
restart, so that every token has the position it would have alone. The results equal separate passes up to rounding.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention.varlen import varlen_attn
from torch.nn.functional import embedding_bag, scaled_dot_product_attention
from transformers import AttentionInterface

from rewards.learning.encoding import Encoded
from rewards.learning.segments import Range


@dataclass(frozen=True)
class SegmentTokens:
    """Where the tokens of each segment of a batch are: segment after segment, in the order of the items.

    `places` [owned tokens] counts through all token slots of the batch. `bounds` [segments + 1] are the cumulative
    numbers of tokens. A slot that several items share may be there several times.
    """

    places: Tensor
    bounds: Tensor


def places_of(segments: Sequence[Range], *, own: int, shared: int = 0, shared_start: int = 0) -> list[list[int]]:
    """Returns the slots of each segment's tokens.

    The first `shared` tokens of the item are in the slots from `shared_start` on, the others in those from `own` on.
    """
    return [
        [shared_start + token if token < shared else own + token - shared for token in range(start, end)]
        for start, end in segments
    ]


def segment_tokens(places: Sequence[Sequence[int]], *, device: torch.device) -> SegmentTokens | None:
    """Returns the slots of all segments of a batch as tensors; None where it has no segments."""
    if not places:
        return None
    bounds = list(accumulate(map(len, places), initial=0))
    return SegmentTokens(
        torch.tensor(list(chain.from_iterable(places)), dtype=torch.int64, device=device),
        torch.tensor(bounds, dtype=torch.int64, device=device),
    )


def segment_means(states: Tensor, segments: SegmentTokens | None) -> Tensor:
    """[segments, hidden]: the mean of states [slots, hidden] over each segment's tokens, 0 for a segment without any.

    Each mean is summed by itself, so it does not depend on which segments are beside it.
    """
    if segments is None:
        return states[:0]
    return embedding_bag(segments.places, states, segments.bounds, mode="mean", include_last_offset=True)


ATTENTION = "rewardloop_packed"
_PROMPT = (5, 6, 7, 8, 9)
PROBE = tuple(
    Encoded((*_PROMPT, *own), response_start=len(_PROMPT), response_tokens=len(own), prompt_cut=0, response_cut=0)
    for own in ((10, 11, 12), (13, 14))
)
"""Two items on which packing is tried."""


@dataclass(frozen=True)
class Stretch:
    """The tokens start..end, causal among themselves.

    They also see all of the stretch with the number `after`, which they continue.
    """

    start: int
    end: int
    after: int | None = None

    @property
    def length(self) -> int:
        return self.end - self.start


@dataclass(frozen=True)
class Packed:
    """A packed row: ids and positions are [1, tokens], `last` [items] is the index of each item's last token.

    `segments` says where the tokens of the items' segments are, None where they have none.

    `keys` lists, stretch after stretch, the tokens that each stretch sees. `bounds` [2, stretches + 1] are the
    cumulative lengths of queries and keys, as kernels for ragged rows want them, and `longest` the largest length of
    each.
    """

    ids: Tensor
    positions: Tensor
    last: Tensor
    stretches: tuple[Stretch, ...]
    keys: Tensor
    bounds: Tensor
    longest: tuple[int, int]
    segments: SegmentTokens | None = None

    @cached_property
    def masks(self) -> list[Tensor | None]:
        """Returns for each stretch a mask [queries, keys] that is added to the attention scores.

        It is None where a stretch continues no other: then plain causal attention is enough. The masks hold 0 and -inf,
        as booleans would be turned into those in every layer.
        """
        before = [None if s.after is None else self.stretches[s.after].length for s in self.stretches]
        return [
            None if b is None else torch.full((s.length, b + s.length), -torch.inf, device=self.ids.device).triu(b + 1)
            for s, b in zip(self.stretches, before, strict=True)
        ]


def pack(groups: Sequence[Sequence[Encoded]], *, device: torch.device) -> Packed:
    """Returns the items in the order of the groups; within a group the common beginning is stored once."""
    ids: list[int] = []
    positions: list[int] = []
    stretches: list[Stretch] = []
    last: list[int] = []
    places: list[list[int]] = []

    def append(tokens: Sequence[int], offset: int, after: int | None) -> None:
        stretches.append(Stretch(len(ids), len(ids) + len(tokens), after))
        positions.extend(range(offset, offset + len(tokens)))
        ids.extend(tokens)

    for group in groups:
        shared, after = shared_length(group), None
        if shared:
            append(group[0].ids[:shared], 0, None)
            after = len(stretches) - 1
        for item in group:
            begun = stretches[after].start if after is not None else 0
            places += places_of(item.segments, own=len(ids), shared=shared, shared_start=begun)
            append(item.ids[shared:], shared, after)
            last.append(len(ids) - 1)
    keys_of = [list(_keys(stretches, stretch)) for stretch in stretches]
    counts = [[stretch.length for stretch in stretches], [len(keys) for keys in keys_of]]
    bounds = [list(accumulate(row, initial=0)) for row in counts]
    return Packed(
        torch.tensor([ids], device=device),
        torch.tensor([positions], device=device),
        torch.tensor(last, device=device),
        tuple(stretches),
        torch.tensor([key for keys in keys_of for key in keys], device=device),
        torch.tensor(bounds, dtype=torch.int32, device=device),
        # Not read from `bounds` later: every layer would wait for the GPU to hand two numbers over.
        (max(counts[0]), max(counts[1])),
        segment_tokens(places, device=device),
    )


def _keys(stretches: Sequence[Stretch], stretch: Stretch) -> Iterator[int]:
    """Yields the tokens that the stretch sees, its own included."""
    if stretch.after is not None:
        yield from _keys(stretches, stretches[stretch.after])
    yield from range(stretch.start, stretch.end)


def shared_length(group: Sequence[Encoded]) -> int:
    """Returns the number of tokens that all items of the group begin with.

    Each item keeps at least its last token for itself, as its reward is read there.
    """
    if len(group) < 2:
        return 0
    first = min(group, key=lambda item: len(item.ids)).ids
    shared = len(first) - 1
    for item in group:
        if item.ids[:shared] != first[:shared]:
            shared = next(i for i, (a, b) in enumerate(zip(first, item.ids, strict=False)) if a != b)
    return shared


def packed_length(group: Sequence[Encoded]) -> int:
    """Returns the number of tokens that the group takes in a row."""
    return sum(len(item.ids) for item in group) - (len(group) - 1) * shared_length(group)


def by_prompt(encoded: Sequence[Encoded], budget: int) -> list[list[int]]:
    """Returns rows that share their prompt's tokens in groups of at most `budget` tokens.

    One row is a group too, whatever its length.
    """
    groups: dict[bytes, list[list[int]]] = {}
    room: dict[bytes, int] = {}
    for row, item in enumerate(encoded):
        # As bytes, which take a ninth of the memory of a tuple.
        prompt, own = array("i", item.ids[: item.response_start]).tobytes(), len(item.ids) - item.response_start
        if room.get(prompt, 0) < own:
            groups.setdefault(prompt, []).append([])
            room[prompt] = budget - item.response_start
        groups[prompt][-1].append(row)
        room[prompt] -= own
    return [group for prompt_groups in groups.values() for group in prompt_groups]


def packed_attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    packing: Packed | None = None,
    scaling: float | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    """[batch, tokens, heads, width]: attention of query [batch, heads, tokens, width] over key and value.

    Key and value may have fewer heads. Without `packing` the rows are padded, and attention_mask [batch, 1, tokens,
    tokens] says which token sees which.
    """
    if packing is None:
        out = scaled_dot_product_attention(
            query, *_repeated(query, key, value), attn_mask=attention_mask, scale=scaling
        )
        return out.transpose(1, 2), None
    # The ragged kernel takes half precision only. Under autocast rotary embeddings can leave query and key in fp32.
    if query.is_cuda and value.dtype in (torch.bfloat16, torch.float16):
        return _ragged(query.to(value.dtype), key.to(value.dtype), value, packing, scaling), None
    return _one_by_one(query, key, value, packing, scaling), None


AttentionInterface.register(ATTENTION, packed_attention)


def _ragged(query: Tensor, key: Tensor, value: Tensor, packing: Packed, scaling: float | None) -> Tensor:
    """Attends with one kernel for all stretches.

    Where a stretch has fewer queries than keys, the kernel's causal diagonal ends in the lower right corner, which is
    what a continued stretch needs.
    """
    q, k, v = (x[0].transpose(0, 1) for x in (query, key, value))  # [tokens, heads, width]
    most_queries, most_keys = packing.longest
    out = varlen_attn(
        q.contiguous(),
        k.index_select(0, packing.keys),
        v.index_select(0, packing.keys),
        packing.bounds[0],
        packing.bounds[1],
        most_queries,
        most_keys,
        scale=scaling,
        window_size=(-1, 0),
        enable_gqa=q.shape[1] != k.shape[1],
    )
    assert isinstance(out, Tensor)
    return out[None]


@torch.compiler.disable  # type: ignore[untyped-decorator]
def _one_by_one(query: Tensor, key: Tensor, value: Tensor, packing: Packed, scaling: float | None) -> Tensor:
    """Attends with one call for each stretch: the fastest way on a CPU, and the one that every device has in fp32."""
    key, value = _repeated(query, key, value)
    # Split once: the gradient of each slice would be as long as the whole row.
    lengths = [stretch.length for stretch in packing.stretches]
    queries, keys, values = (torch.split(x, lengths, dim=2) for x in (query, key, value))
    parts = []
    for stretch, mask, q, k, v in zip(packing.stretches, packing.masks, queries, keys, values, strict=True):
        if stretch.after is not None:
            k, v = torch.cat([keys[stretch.after], k], dim=2), torch.cat([values[stretch.after], v], dim=2)
        added = None if mask is None else mask.to(q.dtype)
        parts.append(scaled_dot_product_attention(q, k, v, attn_mask=added, is_causal=mask is None, scale=scaling))
    return torch.cat(parts, dim=2).transpose(1, 2)


def _repeated(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """Repeats keys and values for every query head, where several heads share one."""
    repeats = query.shape[1] // key.shape[1]
    if repeats == 1:
        return key, value
    return key.repeat_interleave(repeats, dim=1), value.repeat_interleave(repeats, dim=1)


def causal_mask(mask: Tensor) -> Tensor:
    """[batch, 1, length, length]: which token sees which in padded rows; mask [batch, length]."""
    # Padding sees itself: a softmax over no key at all would be NaN.
    length = mask.shape[1]
    causal = torch.ones(length, length, dtype=torch.bool, device=mask.device).tril()
    itself = torch.eye(length, dtype=torch.bool, device=mask.device)
    return (causal & mask.bool()[:, None, None, :]) | itself


def may_pack(network: Any) -> bool:
    """Returns whether the configuration of this decoder leaves it open that it reads packed rows.

    A sliding window is longer than the trial on PROBE, which would not notice it, so the configuration is asked.
    """
    config = network.config.get_text_config()
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
    slides = getattr(config, "sliding_window", None) and getattr(config, "use_sliding_window", True)
    return kinds == {"full_attention"} and not slides and bool(network._supports_attention_backend)


def packed_hidden(network: Any, packed: Packed) -> Tensor:
    """[tokens, hidden]: the last layer's hidden states of a packed row."""
    output = network.base_model(input_ids=packed.ids, position_ids=packed.positions, use_cache=False, packing=packed)
    hidden: Tensor = output.last_hidden_state[0]
    return hidden
