"""Stores MiniLM with a head of random weights, as training stores a model."""

from __future__ import annotations

from pathlib import Path

ATTRIBUTES = ("helpfulness", "correctness", "coherence", "complexity", "verbosity")


def store(place: Path) -> None:
    from rewards.learning.backbones import find_backbone
    from rewards.learning.chat_templates import PROMPT_TEMPLATE, template_hash
    from rewards.learning.model_files import Checkpoint, Manifest, save_checkpoint
    from rewards.learning.model_loading import load_backbone

    loaded = load_backbone(find_backbone("minilm"), attributes=ATTRIBUTES, max_length=512)
    manifest = Manifest(
        kind="ridge",
        attributes=ATTRIBUTES,
        attribute_weights=dict.fromkeys(ATTRIBUTES, 0.2),
        means=(2.0,) * len(ATTRIBUTES),
        pooling=loaded.network.pooling,
        backbone="minilm",
        template=PROMPT_TEMPLATE,
        template_hash=template_hash(PROMPT_TEMPLATE),
        max_length=512,
        snapshot="",
        training={},
    )
    place.parent.mkdir(parents=True, exist_ok=True)
    save_checkpoint(place, Checkpoint(loaded, manifest))
