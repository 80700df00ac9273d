"""How sure a model is: several ridge heads on the same features, each fitted on prompts drawn anew with replacement.

Where they disagree about the reward, more labels would teach the most. They are fitted in closed form, in seconds, and
lie in a folder of their own in the model's directory: other software reads every safetensors file beside the config.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

from rewards.learning.atomic_directories import sync, write_json
from rewards.learning.data import Floats, file_sha256
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
        """[items]: the standard deviation over the heads of the weighted sum of the scores."""
        weight, bias = np.einsum("a,haf->hf", reward, self.weight), self.bias @ np.asarray(reward)
        spread: Floats = (features @ weight.T + bias).std(axis=1, ddof=1)
        return spread


def fit_ensemble(
    features: Floats,
    targets: Floats,
    prompts: Sequence[str],
    *,
    alphas: Sequence[float],
    blocks: Sequence[int],
    seed: int,
    heads: int = HEADS,
) -> Ensemble:
    """features: [n, d], split into `blocks`; targets: [n, k] with NaN for a missing label; alphas: [k], as chosen."""
    scaling = scaling_of(features, blocks)
    scaled = scaling.apply(features)
    group = np.unique(np.asarray(prompts), return_inverse=True)[1]
    draws = np.random.default_rng(seed).multinomial(group.max() + 1, _equal(group.max() + 1), size=heads)
    fits = [_fit(scaled, targets, times[group], alphas) for times in draws]
    weight = np.stack([fit[0] for fit in fits]) / scaling.scale
    bias = np.stack([fit[1] for fit in fits]) - weight @ scaling.mean
    return Ensemble(weight, bias)


def _equal(number: int) -> Floats:
    return np.full(number, 1 / number)


def _fit(features: Floats, targets: Floats, times: Floats, alphas: Sequence[float]) -> tuple[Floats, Floats]:
    """(weight [k, d], bias [k]) on rows that count so many times. Attributes labelled alike share the work."""
    known = np.isfinite(targets)
    # What none of the drawn prompts has a label for keeps the mean of all.
    weight = np.zeros((len(alphas), features.shape[1]))
    bias = np.where(known, targets, 0).sum(axis=0) / known.sum(axis=0).clip(min=1)
    for of in labelled_alike(known):
        rows = np.flatnonzero(known[:, of[0]] & (times > 0))
        if len(rows):
            drawn, penalties = targets[np.ix_(rows, of)], np.array(alphas)[of]
            weight[of], bias[of] = solve_ridge(features[rows], drawn, penalties, times=times[rows])
    return weight, bias


def add_ensemble(directory: Path, ensemble: Ensemble) -> None:
    """Puts the heads into a stored model and its manifest."""
    path = directory / FILE
    path.parent.mkdir(exist_ok=True)
    save_file({"weight": ensemble.weight.astype(np.float32), "bias": ensemble.bias.astype(np.float32)}, path)
    sync(path)
    manifest = read_manifest(directory)
    files = {**manifest.files, FILE: file_sha256(path)}
    write_json(directory / MANIFEST, dataclasses.asdict(dataclasses.replace(manifest, files=files)))


def read_ensemble(directory: Path, manifest: Manifest) -> Ensemble | None:
    """That of a verified model; None where it has none."""
    if FILE not in manifest.files:
        return None
    stored = load_file(directory / FILE)
    return Ensemble(stored["weight"].astype(np.float64), stored["bias"].astype(np.float64))
