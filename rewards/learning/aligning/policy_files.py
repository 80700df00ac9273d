"""Stores an aligned policy: a plain Hugging Face directory, and `alignment.json`, which says how it was made."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rewards.learning import distributed
from rewards.learning.adapters import merge_adapters
from rewards.learning.aligning.policy import Policy
from rewards.learning.atomic_directories import write_json
from rewards.learning.chat_templates import template_hash
from rewards.learning.data import file_sha256
from rewards.learning.model_files import save_weights

FORMAT = 1
ABOUT = "alignment.json"


def finish(policy: Policy) -> None:
    """Merges adapters into the weights that they adapt, and undoes what only training needs."""
    policy.network.eval()
    policy.unpack()
    merge_adapters(policy.network)


def save_policy(place: Path, policy: Policy, about: Mapping[str, Any]) -> None:
    """Writes the whole directory or nothing. `alignment.json` comes last and holds the sha256 of every other file.

    Every process calls it, as each holds a part of the weights; the first one writes.
    """
    with distributed.whole_directory(place) as directory:
        save_weights(policy.network, directory)
        if distributed.is_first():
            policy.frame.tokenizer.save_pretrained(directory)
            files = {path.name: file_sha256(path) for path in sorted(directory.iterdir())}
            template = {"template_hash": template_hash(policy.frame.template), "max_length": policy.frame.max_length}
            write_json(directory / ABOUT, {"format": FORMAT, **about, **template, "files": files})
