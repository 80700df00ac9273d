from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import AutoModelForSequenceClassification, Gemma2Config, LlamaConfig, MistralConfig, Qwen3Config

from rewards.learning.backbones import Source
from rewards.learning.encoding import Encoded
from rewards.learning.inference import predict
from rewards.learning.model import DecoderReward, Loaded, collate
from rewards.learning.model_loading import load_backbone
from rewards.learning.packing import by_prompt, pack, packed_length, shared_length

CPU = torch.device("cpu")
SHAPE: dict[str, Any] = {
    "vocab_size": 100,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 64,
    "num_labels": 3,
    "pad_token_id": 0,
}
PROMPT = tuple(range(10, 30))


def make_item(*own: int, prompt: tuple[int, ...] = PROMPT) -> Encoded:
    return Encoded((*prompt, *own), len(prompt), len(own), 0, 0)


def make_decoder(config: type[Any], **more: Any) -> DecoderReward:
    torch.manual_seed(3)
    network = DecoderReward(make_network(config(**SHAPE, **more)))
    with torch.no_grad():
        network.try_packing()
    return network


def make_network(config: Any) -> Any:
    network: Any = AutoModelForSequenceClassification.from_config(config)  # type: ignore[no-untyped-call]
    return network.eval()


GROUPS = [[make_item(1, 2, 3), make_item(4)], [make_item(5, 6, prompt=(40, 41))], [make_item(7), make_item(8, 9)]]


@pytest.mark.parametrize(("config", "more"), [(LlamaConfig, {}), (Qwen3Config, {"head_dim": 8})])
def test_packed_with_a_shared_prompt_equals_apart(config: type[Any], more: dict[str, Any]) -> None:
    network = make_decoder(config, **more)
    assert network.packs
    together = network(pack(GROUPS, device=CPU))
    apart = [network(pack([[item]], device=CPU))[0] for group in GROUPS for item in group]
    torch.testing.assert_close(together, torch.stack(apart), atol=1e-6, rtol=1e-5)


def test_packed_equals_padded() -> None:
    network = make_decoder(LlamaConfig)
    padded = network(collate([item for group in GROUPS for item in group], pad=0, device=CPU))
    torch.testing.assert_close(network(pack(GROUPS, device=CPU)), padded, atol=1e-6, rtol=1e-5)


def test_packed_equals_plain_transformers() -> None:
    network = make_decoder(Qwen3Config, head_dim=8)
    packed = network(pack(GROUPS, device=CPU))
    network.network.set_attn_implementation("sdpa")
    plain = [network.network(input_ids=torch.tensor([item.ids])).logits[0] for group in GROUPS for item in group]
    torch.testing.assert_close(packed, torch.stack(plain), atol=1e-5, rtol=1e-5)


def test_gradients_are_the_same_packed_and_apart() -> None:
    network = make_decoder(LlamaConfig)
    together = gradient(network, network(pack(GROUPS, device=CPU)).square().sum())
    apart = sum(network(pack([[item]], device=CPU)).square().sum() for group in GROUPS for item in group)
    assert isinstance(apart, Tensor)
    torch.testing.assert_close(together, gradient(network, apart), atol=1e-5, rtol=1e-4)


def gradient(network: DecoderReward, loss: Tensor) -> Tensor:
    weight = network.network.base_model.embed_tokens.weight
    computed: Tensor = torch.autograd.grad(loss, weight)[0]
    return computed


def test_what_one_response_says_does_not_reach_the_other() -> None:
    network = make_decoder(LlamaConfig)
    first, second = ([[make_item(1, 2), make_item(own)]] for own in (5, 6))
    scores = [network(pack(groups, device=CPU))[0] for groups in (first, second)]
    assert torch.equal(*scores)


def test_an_architecture_that_would_see_its_neighbours_is_not_packed() -> None:
    assert not make_decoder(Gemma2Config, head_dim=8).packs
    assert not make_decoder(MistralConfig, sliding_window=16).packs
    assert make_decoder(MistralConfig, sliding_window=None).packs


def test_a_network_that_fails_the_trial_keeps_its_attention(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rewards.learning.model.packed_hidden", lambda network, packed: torch.zeros(10, 32))
    network = make_decoder(LlamaConfig)
    assert not network.packs
    assert network.network.config._attn_implementation == "sdpa"


def test_the_common_beginning_is_shared_and_no_more() -> None:
    assert shared_length([make_item(1, 2), make_item(1, 3)]) == len(PROMPT) + 1
    assert shared_length([make_item(1, 2)]) == 0
    assert shared_length([make_item(1), make_item(1)]) == len(PROMPT)  # each keeps its last token
    assert packed_length([make_item(1, 2), make_item(3)]) == len(PROMPT) + 3


def test_rows_of_one_prompt_are_grouped_up_to_the_budget() -> None:
    items = [make_item(1), make_item(9, prompt=(40,)), make_item(2), make_item(3)]
    assert by_prompt(items, 22) == [[0, 2], [3], [1]]
    assert by_prompt(items, 1) == [[0], [2], [3], [1]]


def test_a_score_does_not_depend_on_its_neighbours(decoder_directory: Path) -> None:
    loaded = load_backbone(Source(str(decoder_directory), local=True), attributes=["a", "b"], max_length=64)
    items = [make_item(*range(10, 10 + n), prompt=PROMPT[: n % 3 + 1]) for n in range(1, 20)]
    alone = torch.tensor([predict(loaded, [item], batch_tokens=64)[0].tolist() for item in items])
    for budget in (30, 100, 10_000):
        torch.testing.assert_close(torch.from_numpy(predict(loaded, items, batch_tokens=budget)).float(), alone)


def test_packed_rows_hold_no_padding(decoder_directory: Path) -> None:
    loaded: Loaded = load_backbone(Source(str(decoder_directory), local=True), attributes=["a"], max_length=64)
    batches = loaded.batches([item for group in GROUPS for item in group], 1_000)
    assert batches == [[[0, 1, 3, 4], [2]]]
    assert loaded.arranged(GROUPS).ids.shape == (1, 24 + 4 + 23)
