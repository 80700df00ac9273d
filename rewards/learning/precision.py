"""Decides whether the passes through a network are computed in bf16 or in fp32.

Only the backbone's products of matrices and its attention are ever in bf16. The weights, the sums over the layers,
pooling and head stay in fp32.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import torch

from rewards.learning.config import AUTO, BFLOAT16, FLOAT32
from rewards.learning.data import Item, Turn
from rewards.learning.model import ENCODER, Loaded

BF16_INSTRUCTIONS = ("avx512_bf16", "amx_bf16")
"""The instruction sets that multiply matrices in bf16 faster than in fp32. Without one, bf16 is emulated and slower."""
LARGEST_DIFFERENCE = 0.02
"""How far the features of a text may be from those in fp32, as a share of their norm. MiniLM's are at 0.006."""
TRIAL = (
    ("Who wrote Hamlet?", "William Shakespeare."),
    ("Is 91 a prime number?", "No: 91 is 7 times 13, so it has divisors other than 1 and itself."),
    (
        "My bread does not rise. What can I do?",
        """Three things help:

1. Check that the yeast is alive: in warm water with sugar it should foam within ten minutes.
2. Let the dough stand somewhere warm, at 25 to 28 degrees.
3. Give it more time, until it has doubled in size. A dough from the refrigerator takes twice as long.""",
    ),
)


def with_precision(loaded: Loaded, name: str) -> Loaded:
    """Returns the model with its features and scores computed in the precision of a configuration.

    `auto` is bf16 for an encoder on a processor with instructions for it, if the features of a few texts are nearly
    those in fp32; everything else is fp32. The processor alone is asked and nothing is timed: a busy machine must not
    change a model's scores.
    """
    # A decoder's packed rows share their prompts, so a response's scores in bf16 would depend on which are beside it.
    is_suitable = name == AUTO and loaded.device.type == "cpu" and loaded.network.pooling == ENCODER and has_bf16()
    # Written so that NaN, of an overflow for example, is no agreement.
    gains = is_suitable and difference(loaded) <= LARGEST_DIFFERENCE
    return replace(loaded, half=name == BFLOAT16 or gains)


def trains_in_half(loaded: Loaded, name: str) -> bool:
    """Returns whether the training steps of the configured precision compute in bf16: on a GPU they do by default."""
    return loaded.half or (name == AUTO and loaded.device.type == "cuda")


def name_of(half: bool) -> str:
    """Returns the precision's name, as configurations and metrics have it."""
    return BFLOAT16 if half else FLOAT32


@cache
def has_bf16() -> bool:
    """Returns whether this processor has instructions for bf16 that torch's library for matrices (oneDNN) uses."""
    able = torch.cpu.get_capabilities()
    has_library: bool = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    return has_library and any(able.get(name, False) for name in BF16_INSTRUCTIONS)


def difference(loaded: Loaded) -> float:
    """Returns the largest relative difference between the features in bf16 and in fp32 of the texts of TRIAL.

    Without the length, which is computed from no weights.
    """
    encoded = [loaded.frame.encode(Item("", (Turn("user", question),), answer)) for question, answer in TRIAL]
    batch = loaded.collate(encoded)
    features = []
    for half in (False, True):
        trial = replace(loaded, half=half)
        with torch.no_grad(), trial.rounding():
            features.append(trial.network.features(batch)[:, :-1])
    exact, rounded = features
    return float(((rounded - exact).norm(dim=1) / exact.norm(dim=1)).max())
