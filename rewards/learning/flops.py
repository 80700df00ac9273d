"""How much of a GPU's arithmetic a step uses."""

from __future__ import annotations

import torch

from rewards.learning import distributed
from rewards.learning.model import Loaded

# Dense bf16 operations a second, from the makers' data sheets.
PEAKS = {"H100": 989e12, "H200": 989e12, "A100": 312e12, "L40S": 362e12, "B200": 2250e12}


def model_flops_utilization(loaded: Loaded, tokens: int, seconds: float) -> dict[str, float]:
    """{"mfu": ...} on a GPU that we know: 6 operations a weight and token (arXiv 2204.02311, appendix B), attention
    and recomputation left out; `tokens` are those that were computed, each once."""
    if loaded.device.type != "cuda":
        return {}
    name = torch.cuda.get_device_name(loaded.device)
    peak = next((peak for known, peak in PEAKS.items() if known in name), None)
    return {"mfu": round(6 * _weights(loaded) * tokens / seconds / peak / distributed.size(), 4)} if peak else {}


def _weights(loaded: Loaded) -> int:
    """All but the embeddings, which are looked up."""
    network = loaded.network.network
    embeddings: int = sum(p.numel() for p in network.get_input_embeddings().parameters())
    weights: int = sum(p.numel() for p in network.parameters())
    return weights - embeddings
