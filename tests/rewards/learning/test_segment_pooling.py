from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import LlamaConfig

from rewards.learning.backbones import Source
from rewards.learning.encoding import Encoded
from rewards.learning.model import Loaded, RewardNetwork, collate, set_segment_head
from rewards.learning.model_loading import load_backbone
from rewards.learning.packing import pack, places_of, segment_means, segment_tokens
from tests.rewards.learning.test_packing import make_decoder

CPU = torch.device("cpu")
PROMPT = (20, 21, 22)


def make_item(*own: int, segments: tuple[tuple[int, int], ...], prompt: tuple[int, ...] = PROMPT) -> Encoded:
    """Segments are given in tokens of the response."""
    places = tuple((len(prompt) + start, len(prompt) + end) if end else (0, 0) for start, end in segments)
    return Encoded((*prompt, *own), len(prompt), len(own), 0, 0, places)


ITEMS = [
    make_item(30, 31, 32, 33, segments=((0, 1), (1, 4))),
    make_item(30, 31, 34, segments=((0, 2), (0, 0), (2, 3))),
    make_item(40, segments=(), prompt=(9,)),
    make_item(41, 42, segments=((0, 1), (1, 2)), prompt=(9, 8)),
]


@pytest.fixture
def loaded(backbone: Path) -> Loaded:
    model = load_backbone(Source(str(backbone), local=True), attributes=["a"], aspects=["x", "y"], max_length=64)
    torch.manual_seed(2)
    set_segment_head(model.network, torch.randn(2, 16), torch.tensor([1.0, 2.0]))
    return model


def test_a_segment_is_the_mean_of_its_tokens() -> None:
    states = torch.tensor([[1.0, 0.0], [3.0, 4.0], [5.0, 8.0], [9.0, 9.0]])
    segments = segment_tokens([[0], [1, 2], [], [1, 1, 3]], device=CPU)
    expected = torch.tensor([[1.0, 0.0], [4.0, 6.0], [0.0, 0.0], [5.0, 17 / 3]])
    torch.testing.assert_close(segment_means(states, segments), expected)


def test_the_gradient_goes_to_the_tokens_of_the_segment_alone() -> None:
    states = torch.zeros(4, 1, requires_grad=True)
    mean = segment_means(states, segment_tokens([[1, 2]], device=CPU)).sum()
    gradient = torch.autograd.grad(mean, states)[0]
    assert gradient[:, 0].tolist() == [0.0, 0.5, 0.5, 0.0]


def test_a_batch_without_segments_has_none() -> None:
    assert segment_tokens([], device=CPU) is None
    assert segment_means(torch.zeros(4, 3), None).shape == (0, 3)


def test_shared_tokens_are_found_where_they_are_stored() -> None:
    assert places_of([(3, 5), (5, 7)], own=20, shared=4, shared_start=10) == [[13, 20], [21, 22]]


@torch.no_grad()
def test_padding_moves_no_segment(loaded: Loaded) -> None:
    together = loaded.network.both_features(collate(ITEMS, pad=0, device=CPU))[1]
    torch.testing.assert_close(together, alone(loaded.network), atol=1e-6, rtol=1e-5)


@torch.no_grad()
def test_nor_does_padding_on_the_left() -> None:
    network = make_decoder(LlamaConfig)
    together = network.both_features(collate(ITEMS, pad=0, device=CPU, left=True))[1]
    torch.testing.assert_close(together, alone(network), atol=1e-6, rtol=1e-5)


def alone(network: RewardNetwork) -> Tensor:
    """The features of the segments of each item in a batch by itself."""
    return torch.cat([network.both_features(collate([item], pad=0, device=CPU))[1] for item in ITEMS if item.segments])


@torch.no_grad()
def test_segments_are_the_means_of_the_states_by_hand(loaded: Loaded) -> None:
    of_segments = loaded.network.both_features(collate(ITEMS[:1], pad=0, device=CPU))[1]
    loaded.network.network.set_attn_implementation("sdpa")  # plain transformers
    states = loaded.network.network.base_model(torch.tensor([ITEMS[0].ids])).last_hidden_state[0]
    torch.testing.assert_close(of_segments, torch.stack([states[3], states[4:7].mean(dim=0)]), atol=1e-6, rtol=1e-5)


@torch.no_grad()
def test_packed_segments_equal_separate_ones_though_responses_begin_alike() -> None:
    network = make_decoder(LlamaConfig)
    packed = pack([ITEMS[:2], ITEMS[2:3], ITEMS[3:]], device=CPU)
    assert packed.ids.shape[1] < sum(len(item.ids) for item in ITEMS) - len(PROMPT)  # a part of a response as well
    apart = [network.both_features(pack([[item]], device=CPU))[1] for item in ITEMS if item.segments]
    torch.testing.assert_close(network.both_features(packed)[1], torch.cat(apart), atol=1e-6, rtol=1e-5)
    padded = network.both_features(collate(ITEMS, pad=0, device=CPU))
    torch.testing.assert_close(network.both_features(packed), padded, atol=1e-6, rtol=1e-5)


@torch.no_grad()
def test_both_heads_read_one_pass(loaded: Loaded) -> None:
    batch = loaded.arranged([[item] for item in ITEMS])
    scores, of_segments = loaded.network.both(batch)
    torch.testing.assert_close(scores, loaded.network(batch))
    head = loaded.network.segment_head
    assert head is not None
    torch.testing.assert_close(of_segments, loaded.network.both_features(batch)[1] @ head.weight.T + head.bias)
    np.testing.assert_allclose(of_segments[3], [1.0, 2.0], atol=1e-6)  # the segment without a token: the bias alone
