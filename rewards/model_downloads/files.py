"""Lists the files of a model that may leave: README.md, `reward/` and `model/`, each with its size and hash.

None of them names a folder of this server.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.utils.translation import gettext as _

from annotator.infrastructure.refusals import Refusal
from annotator.infrastructure.storage import store
from annotator.infrastructure.storage.hidden_paths import value_without_places
from annotator.infrastructure.web.tar_archives import Member
from rewards.model_downloads.card import card
from rewards.models import RewardModel
from rewards.registry.registry import MANIFEST, REWARD_MANIFEST

CARD = "README.md"
MODEL, REWARD = PARTS = ("model", "reward")


@dataclass(frozen=True)
class ModelFile:
    """One file: its path in the download, its size in bytes, its SHA-256, and where it is, or its content."""

    path: str
    size: int
    sha256: str
    content: Path | bytes


def files_of(model: RewardModel) -> list[ModelFile]:
    """Returns the files that the model has, the card first.

    Raises:
        Refusal: there are none, or not here.
    """
    if model.is_erased():
        raise Refusal(
            _("The files were erased, because the model learnt from texts that had to be erased."), code="files_erased"
        )
    reward = reward_manifest(model)
    text = card(model, reward).encode()
    try:
        files = [_of_bytes(CARD, text)]
        if reward is not None:
            folder = model.reward_directory()
            files.append(_of_bytes(f"{REWARD}/{REWARD_MANIFEST}", store.content_of(folder / REWARD_MANIFEST)))
            files += _listed(REWARD, folder, reward["files"])
        return [*files, *_model_files(model)]
    except (OSError, ValueError) as error:
        remedy = _("The model's files cannot be read here. The operator finds out why with `manage.py verify_model`.")
        raise Refusal(remedy, code="files_missing", status=503) from error


def part_of(files: Sequence[ModelFile], part: str) -> list[ModelFile]:
    """Returns the card and the files of one part, *model* or *reward*; all files where `part` is empty.

    Raises:
        Refusal: the part is missing.
    """
    if not part:
        return list(files)
    chosen = [file for file in files if file.path.startswith(f"{part}/")]
    if not chosen:
        raise Refusal(
            _("This model has no folder reward/; its README.md says why, and what to use instead."),
            code="no_reward_folder",
        )
    return [*(file for file in files if file.path == CARD), *chosen]


def members_of(model: RewardModel, files: Sequence[ModelFile]) -> list[Member]:
    """Returns the files as members of an archive, in one folder."""
    top = f"{model.project.slug}-reward-model-{model.version}"
    return [Member(f"{top}/{file.path}", file.size, file.content) for file in files]


def reward_manifest(model: RewardModel) -> dict[str, Any] | None:
    """Returns what reward.json says; None where there is no such file."""
    try:
        manifest: dict[str, Any] = json.loads(store.content_of(model.reward_directory() / REWARD_MANIFEST))
    except (OSError, ValueError):
        return None
    return manifest


def _model_files(model: RewardModel) -> Iterator[ModelFile]:
    folder = model.directory()
    text = store.content_of(folder / MANIFEST)
    manifest = json.loads(text)
    # Models of earlier versions may name the folder of their backbone.
    hidden = value_without_places({name: manifest[name] for name in ("backbone", "training") if name in manifest})
    if hidden != {name: manifest[name] for name in hidden}:
        text = json.dumps({**manifest, **hidden}, indent=1).encode()
    yield _of_bytes(f"{MODEL}/{MANIFEST}", text)
    yield from _listed(MODEL, folder, manifest.get("files", {}))


def _listed(part: str, folder: Path, hashes: dict[str, str]) -> Iterator[ModelFile]:
    for name, sha256 in sorted(hashes.items()):
        path = folder / name
        yield ModelFile(f"{part}/{name}", store.size_of(path), sha256, path)


def _of_bytes(path: str, content: bytes) -> ModelFile:
    return ModelFile(path, len(content), hashlib.sha256(content).hexdigest(), content)
