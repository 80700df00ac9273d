"""Measures whether the gate promotes what has learnt and nothing else, and whether the learning curve keeps its word.

`python -m benchmarks.bench_evidence [--quick] [--power] [--seed N] [--features FOLDER]`. Three real data sets of
SHARED_DATA (../shared/data): ratings by a judge, ranks of assistants' answers, preferences between two answers. The
features come from the default backbone; FOLDER keeps them for the next time. What follows is drawn again and again:

- first models, on shuffled and on true labels, with the evidence that a training run writes;
- later models that are exactly as good as the champion, or worse, at 5 to 200 prompts, once and twenty times in a row;
- first models of 100, 300 and 1,000 labelled prompts, on true and on shuffled labels: the gate's power, and nothing
  else with --power;
- learning curves, whose interval for doubling the labels is compared with what doubling them brings.

The last line is JSON: the worst share over the data sets and sizes where a target is an upper one, the mean share where
it is a lower one. Models of data from which all prompts together teach nothing beyond length are not asked to pass.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.evidence import (
    RETRAININGS,
    DataSet,
    Random,
    Rivals,
    curve_covers,
    data_sets,
    learns,
    rivals,
    shuffled_promoted,
    true_promoted,
)
from benchmarks.measuring import DATA, options, tell

HELD_OUT = (5, 10, 20, 50, 100, 200)
LABELLED = (100, 300, 1_000)


def share(what: str, data: DataSet, once: Callable[[Random], bool], *seed: int, tries: int, **values: Any) -> float:
    """Says how often something happens, with Wilson's 95 % interval; returns the share."""
    began = time.monotonic()
    p = sum(once(np.random.default_rng([*seed, number])) for number in range(tries)) / tries
    z = 1.96
    middle, reach = p + z * z / (2 * tries), z * np.sqrt(p * (1 - p) / tries + z * z / (4 * tries * tries))
    low, high = (float((middle + side * reach) / (1 + z * z / tries)) for side in (-1, 1))
    tell(what, data=data.name, **values, share=p, low=low, high=high, tries=tries, seconds=time.monotonic() - began)
    return p


def tell_power(data: DataSet, *seed: int, tries: int) -> None:
    """How often first models of so many labelled prompts are promoted, and those of as many shuffled labels."""
    for size in LABELLED:
        if size <= len(data.prompts()):
            for what, once in (("power", true_promoted), ("power, shuffled", shuffled_promoted)):
                share(what, data, partial(once, replace(data, drawn=size)), *seed, size, tries=tries, prompts=size)


def later_models(data: DataSet, *seed: int, quick: bool) -> dict[str, list[float]]:
    """How often a later model replaces the champion, at each number of held-out prompts."""
    # Fitted before: fitting them for each try would take the most time.
    fitted = [rivals(data, np.random.default_rng([seed[0], number])) for number in range(3 if quick else 10)]
    most = min(len(pair.data.prompts()) for pair in fitted)
    shares: dict[str, list[float]] = {}
    for what, tries, kind in (
        ("equal_replaces", 300 if quick else 4_000, {}),
        ("worse_replaces", 300 if quick else 4_000, {"worse": True}),
        ("any_of_20_replaces", 200 if quick else 1_000, {"looks": RETRAININGS}),
    ):
        for size in (5, 20, 100) if quick else HELD_OUT:
            if size <= most:
                once = partial(replaced, fitted, size, kind)
                measured = share(what, data, once, *seed, size, tries=tries, prompts=size)
                shares.setdefault(what, []).append(measured)
    return shares


def replaced(fitted: Sequence[Rivals], size: int, kind: dict[str, Any], random: Random) -> bool:
    return fitted[int(random.integers(len(fitted)))].replaced(size, random, **kind)


def main(words: Sequence[str]) -> None:
    given = options(words, quick=False, power=False, seed=1, features="")
    if not DATA.is_dir():
        sys.exit(f"There is no folder {DATA}. Set SHARED_DATA to the folder with the data sets.")
    shares: dict[str, list[float]] = {}
    for number, data in enumerate(
        data_sets(quick=given.quick, folder=Path(given.features) if given.features else None)
    ):
        seed = (given.seed, number)
        tell(data.name, prompts=len(data.prompts()), responses=len(data.features[0]))
        tell_power(data, *seed, tries=10 if given.quick else 40)
        if given.power:
            continue
        learnt = learns(data)
        tell("learns", data=data.name, learns=learnt)
        for what, once, tries in (
            ("shuffled_promoted", shuffled_promoted, 25 if given.quick else 200),
            ("true_promoted", true_promoted, 10 if given.quick else 50),
            ("curve_covers", curve_covers, 12 if given.quick else 100),
        ):
            measured = share(what, data, partial(once, data), *seed, tries=tries)
            if learnt or once is not true_promoted:
                shares.setdefault(what, []).append(measured)
        for what, of_sizes in later_models(data, *seed, quick=given.quick).items():
            shares.setdefault(what, []).extend(of_sizes)
    lower = ("true_promoted", "curve_covers")
    tell(**{what: float(np.mean(of)) if what in lower else max(of) for what, of in shares.items()})


if __name__ == "__main__":
    main(sys.argv[1:])
