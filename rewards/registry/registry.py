"""Says where a model comes from, and verifies that its files are still those that were written."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _

from annotator.infrastructure.storage import store
from annotator.infrastructure.storage.hidden_paths import without_places
from rewards.models import RewardModel

MANIFEST, REWARD_MANIFEST = "reward_model.json", "reward.json"


def lineage(model: RewardModel) -> dict[str, Any]:
    """Returns what the model was made from and by; equal hashes mean equal contents."""
    run, manifest = model.run, model.manifest
    return {
        "snapshot": run.snapshot.content_hash if run.snapshot else manifest.get("snapshot", ""),
        "rubric": run.snapshot.manifest.get("rubric", {}) if run.snapshot else {},
        "config_hash": run.config_hash,
        "code_version": run.code_version,
        "template_hash": manifest.get("template_hash", ""),
        "rendering": rendering(model),
        "backbone": without_places(manifest.get("backbone", "")),
        "kind": manifest.get("kind", ""),
        "seed": run.seed,
        "parent": model.parent.version if model.parent else None,
        "files": manifest.get("files", {}),
    }


@dataclass(frozen=True)
class Labels:
    """How many labels a model has learnt from, and how many were held out to judge it by; None where unknown."""

    learnt: int | None = None
    held_out: int | None = None


def labels(model: RewardModel) -> Labels:
    """Returns the numbers of labels that the model's snapshot counts."""
    counts = model.run.snapshot.manifest.get("counts", {}) if model.run.snapshot else {}
    return Labels(counts.get("train_labels"), counts.get("validation_labels"))


def rubric_in_words(model: RewardModel) -> str:
    """Returns the versions of the rubric that the model's labels were made under; empty for models of before."""
    versions: dict[str, int] = lineage(model)["rubric"].get("labels_by_version", {})
    labels = (_("version %(version)s: %(labels)s labels") % {"version": v, "labels": n} for v, n in versions.items())
    return "; ".join(labels)


def rendering(model: RewardModel) -> str:
    """Returns in words how the model turns conversations into tokens; manifests of earlier releases do not say."""
    version = model.manifest.get("rendering", 1)
    if version > 1:
        return _("version %(version)s") % {"version": version}
    text = _("version 1, of an earlier release: special tokens in texts count as real ones, and cuts divide turns.")
    if "strftime_now" in model.manifest.get("template", ""):
        dated = _("Its chat template inserts the date. Scores from before the update hold the date of their day.")
        text = f"{text} {dated}"
    return text


def verify(model: RewardModel) -> list[str]:
    """Hashes the files of the model and of its snapshot again; returns what is wrong, an empty list if nothing is."""
    if model.is_erased():
        return [_("The files were erased, because the model learnt from texts that had to be erased.")]
    faults = [*changed_files(model.directory(), model.manifest.get("files", {}))]
    path = model.directory() / MANIFEST
    try:
        if json.loads(store.content_of(path)) != model.manifest:
            faults.append(_("%(file)s is not what was registered.") % {"file": _described(path)})
    except (OSError, ValueError):
        faults.append(_("%(file)s cannot be read.") % {"file": _described(path)})
    faults += _reward(model)
    if model.run.snapshot:
        faults += changed_files(model.run.snapshot.directory(), model.run.snapshot.manifest.get("files", {}))
    return faults


def _reward(model: RewardModel) -> Iterator[str]:
    """Yields what is wrong with the folder of the one reward, which not every model has."""
    path = model.reward_directory() / REWARD_MANIFEST
    if not store.has(path.parent):
        return
    try:
        files = json.loads(store.content_of(path))["files"]
    except (OSError, ValueError, KeyError):
        yield _("%(file)s cannot be read.") % {"file": _described(path)}
        return
    yield from changed_files(path.parent, files)


def changed_files(folder: Path, files: Mapping[str, str]) -> Iterator[str]:
    """Yields what is wrong with the files of a folder, given the SHA-256 of each by its name."""
    for name, digest in sorted(files.items()):
        path = folder / name
        if not store.has(path):
            yield _("%(file)s is missing.") % {"file": _described(path)}
        elif store.sha256_of(path) != digest:
            text = _("%(file)s is not the file that was written: its sha256 differs.")
            yield text % {"file": _described(path)}


def _described(path: Path) -> str:
    # Relative to the artifacts' folder: only the operator may know where that is.
    return str(path.relative_to(settings.ARTIFACTS))
