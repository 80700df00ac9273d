"""Measures how sure a model is by several ridge heads, each fitted on prompts drawn with replacement.

Where they disagree about the reward, more labels would teach the most. They are fitted in closed form, in seconds, and
have a folder of their own in the model's directory: other software reads every safetensors file beside the config.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

from rewards.learning.atomic_directories import sync, write_json
from rewards.learning.data import Features, Floats, file_sha256
from rewards.learning.model_files import MANIFEST, Manifest, read_manifest
from rewards.learning.ridge import labelled_alike, scaling_of, solve_ridge

HEADS = 8
FILE = "ensemble/heads.safetensors"


@dataclass(frozen=True)
class Ensemble:
    """Linear heads on the same features: weight [heads, attributes, features], bias [heads, attributes]."""

    weight: Floats
    bias: Floats

    def deviation(self, features: Floats, reward: Sequence[float]) -> Floats:
        """[items]: the standard deviation over the heads of the reward of features [items, features].

        reward [attributes]: the weights of the scores in the reward.
        """
        weight, bias = np.einsum("a,haf->hf", reward, self.weight), self.bias @ np.asarray(reward)
        # [items, heads]; ddof=1, as eight heads are a sample: without it the deviation would be 6 % too small.
        spread: Floats = (features @ weight.T + bias).std(axis=1, ddof=1)
        return spread


def fit_ensemble(
    features: Features,
    targets: Floats,
    prompts: Sequence[str],
    *,
    alphas: Sequence[float],
    blocks: Sequence[int],
    seed: int,
    heads: int = HEADS,
) -> Ensemble:
    """Fits each head on prompts drawn with replacement.

    features [n, d], split into `blocks` columns each; targets [n, k] with NaN for a missing label; alphas [k]: the
    penalty per attribute, as chosen on all rows.
    """
    scaling = scaling_of(features, blocks)
    scaled = scaling.apply(features)
    group = np.unique(np.asarray(prompts), return_inverse=True)[1]
    number = group.max() + 1
    # Prompts are drawn, not rows: the rows of one prompt are alike, and drawing them apart would make heads agree.
    draws = np.random.default_rng(seed).multinomial(number, np.full(number, 1 / number), size=heads)
    fits = [_fit(scaled, targets, times[group], alphas) for times in draws]
    weight = np.stack([fit[0] for fit in fits]) / scaling.scale
    bias = np.stack([fit[1] for fit in fits]) - weight @ scaling.mean
    return Ensemble(weight, bias)


def _fit(features: Floats, targets: Floats, times: Floats, alphas: Sequence[float]) -> tuple[Floats, Floats]:
    """Returns (weight [k, d], bias [k]) of a ridge on rows that each count `times` [n] times."""
    known = np.isfinite(targets)
    # An attribute for which none of the drawn prompts has a label keeps the mean of all its labels.
    weight = np.zeros((len(alphas), features.shape[1]))
    bias = np.where(known, targets, 0).sum(axis=0) / known.sum(axis=0).clip(min=1)
    for columns in labelled_alike(known):
        rows = np.flatnonzero(known[:, columns[0]] & (times > 0))
        if len(rows):
            drawn, penalties = targets[np.ix_(rows, columns)], np.array(alphas)[columns]
            weight[columns], bias[columns] = solve_ridge(features[rows], drawn, penalties, times=times[rows])
    return weight, bias


def add_ensemble(directory: Path, ensemble: Ensemble) -> None:
    """Puts the heads into a stored model and its manifest."""
    path = directory / FILE
    path.parent.mkdir(exist_ok=True)
    save_file({"weight": ensemble.weight.astype(np.float32), "bias": ensemble.bias.astype(np.float32)}, path)
    # The heads reach the disk before the manifest that names them: a manifest is never newer than its files.
    sync(path)
    manifest = read_manifest(directory)
    files = {**manifest.files, FILE: file_sha256(path)}
    write_json(directory / MANIFEST, dataclasses.replace(manifest, files=files).as_json())


def read_ensemble(directory: Path, manifest: Manifest) -> Ensemble | None:
    """Returns the ensemble of a model whose files were verified; None where it has none."""
    if FILE not in manifest.files:
        return None
    stored = load_file(directory / FILE)
    return Ensemble(stored["weight"].astype(np.float64), stored["bias"].astype(np.float64))
