from __future__ import annotations

from functools import partialmethod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from transformers import AutoModelForSequenceClassification, LlamaConfig

from rewards.learning.adapters import add_adapters
from rewards.learning.finetune import operations_per_token
from rewards.learning.train import train
from tests.rewards.learning.builders import make_run, read_json

LLAMA: dict[str, Any] = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "vocab_size": 50,
    "num_labels": 1,
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # torch warns of itself
def test_compiled_layers_learn_the_same(
    decoder_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Layers are captured as always and run without code for this machine, for which it would need a C++ compiler.
    monkeypatch.setattr(nn.Module, "compile", partialmethod(nn.Module.compile, backend="aot_eager"))
    compiled = torch._dynamo.utils.counters["stats"]["calls_captured"]
    losses = []
    for name in (False, True):
        run = make_run(tmp_path / str(name), backbone=decoder_directory, epochs=2, learning_rate=1e-3, compile=name)
        train(run)
        losses.append(read_json(run / "metrics.json")["training"]["losses"])
    assert torch._dynamo.utils.counters["stats"]["calls_captured"] > compiled
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-4)


def test_frozen_weights_take_four_operations_a_token_and_trained_ones_six() -> None:
    network: Any = AutoModelForSequenceClassification.from_config(LlamaConfig(**LLAMA))  # type: ignore[no-untyped-call]
    weights = sum(p.numel() for p in network.parameters()) - network.get_input_embeddings().weight.numel()
    assert operations_per_token(network) == 6 * weights
    add_adapters(network.base_model, 4)
    adapters = sum(p.numel() for name, p in network.named_parameters() if "lora" in name)
    head = network.score.weight.numel()
    assert operations_per_token(network) == 6 * (adapters + head) + 4 * (weights - head)
