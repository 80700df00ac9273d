"""Computes how much of a GPU's arithmetic a training step uses."""

from __future__ import annotations

from typing import Any

import torch

from rewards.learning import distributed
from rewards.learning.model import Loaded

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
