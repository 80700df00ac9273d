"""Measures whether the gate promotes what has learnt and nothing else, and whether the learning curve keeps its word.

`python -m benchmarks.bench_evidence [--quick] [--power] [--seed N] [--features FOLDER]`. Three real data sets of
SHARED_DATA (../shared/data): ratings by a judge, ranks of assistants' answers, preferences between two answers. The
features come from the default backbone; FOLDER keeps them for the next time. What follows is drawn again and again:

- first models, on shuffled and on true labels, with the evidence that a training run writes;
- later models that are exactly as good as the champion, or worse, at 5 to 200 prompts, once and twenty times in a row;
- first models of 100, 300 and 1,000 labelled prompts, on true and on shuffled labels: the gate's power, and nothing
  else with --power;
- learning curves, whose interval for doubling the labels is compared with what doubling them brings;
- without --quick, labelling in the order of the ensemble's uncertainty beside labelling in random order.

The last line is JSON: the worst share over the data sets and sizes where a target is an upper one, the mean share where
it is a lower one. Models of data from which all prompts together teach nothing beyond length are not asked to pass.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.evidence.data_sets import DataSet, data_sets
from benchmarks.evidence.gate import (
    Rivals,
    any_of_20_replaces,
    equal_replaces,
    learns,
    rivals,
    shuffled_promoted,
    true_promoted,
    worse_replaces,
)
from benchmarks.evidence.labelling import curve_covers, ordering_gain
from benchmarks.evidence.models import Random
from benchmarks.real_data import DATA
from rewards.learning.paired_gain import t_quantile

HELD_OUT = (5, 10, 20, 50, 100, 200)
LABELLED = (100, 300, 1_000)


@dataclass(frozen=True)
class Share:
    """How often something happened in so many tries."""

    hits: int
    tries: int

    @property
    def value(self) -> float:
        return self.hits / self.tries

    def interval(self) -> tuple[float, float]:
        """The bounds of Wilson's 95 % interval."""
        z, n, p = 1.96, self.tries, self.value
        middle, reach = p + z * z / (2 * n), z * np.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
        return float((middle - reach) / (1 + z * z / n)), float((middle + reach) / (1 + z * z / n))


Promoted = Callable[[DataSet, Random], bool]


def share(tries: int, once: Callable[[Random], bool], *seed: int) -> Share:
    return Share(sum(once(np.random.default_rng([*seed, number])) for number in range(tries)), tries)


def tell(what: str, **values: Any) -> None:
    rounded = {key: round(value, 4) if isinstance(value, float) else value for key, value in values.items()}
    print(json.dumps({"what": what, **rounded}), flush=True)


def tell_share(what: str, data: DataSet, measured: Share, began: float, **values: Any) -> None:
    low, high = measured.interval()
    numbers = {"share": measured.value, "low": low, "high": high, "tries": measured.tries}
    tell(what, data=data.name, **values, **numbers, seconds=time.monotonic() - began)


def measured_once_per_set(
    what: str, once: Callable[[DataSet, Random], bool], sets: Sequence[DataSet], tries: int, seed: int
) -> list[Share]:
    shares = []
    for number, data in enumerate(sets):
        began = time.monotonic()

        def drawn(random: Random, data: DataSet = data) -> bool:
            return once(data, random)

        shares.append(share(tries, drawn, seed, number))
        tell_share(what, data, shares[-1], began)
    return shares


def measured_by_size(
    what: str,
    once: Callable[[Rivals, int, Random], bool],
    pairs: Sequence[Sequence[Rivals]],
    sizes: Sequence[int],
    tries: int,
    seed: int,
) -> list[Share]:
    """Each try takes one of the pairs of models that were fitted before: fitting them anew would take the most time."""
    shares = []
    for number, fitted in enumerate(pairs):
        most = min(len({task.prompt_hash for task in pair.tasks}) for pair in fitted)
        for size in sizes:
            if size > most:
                continue
            began = time.monotonic()

            def drawn(random: Random, size: int = size, fitted: Sequence[Rivals] = fitted) -> bool:
                return once(fitted[int(random.integers(len(fitted)))], size, random)

            shares.append(share(tries, drawn, seed, number, size))
            tell_share(what, fitted[0].data, shares[-1], began, prompts=size)
    return shares


def tell_power(sets: Sequence[DataSet], tries: int, seed: int) -> None:
    """How often first models of so many labelled prompts are promoted, and those of as many shuffled labels."""
    for number, data in enumerate(sets):
        for size in LABELLED:
            if size > len(data.prompts()):
                continue
            for what, once in (("power", true_promoted), ("power, shuffled", shuffled_promoted)):
                began = time.monotonic()

                def drawn(random: Random, once: Promoted = once, data: DataSet = data, size: int = size) -> bool:
                    return once(replace(data, drawn=size), random)

                tell_share(what, data, share(tries, drawn, seed, number, size), began, prompts=size)


def tell_ordering(sets: Sequence[DataSet], tries: int, seed: int) -> None:
    for number, data in enumerate(sets):
        began = time.monotonic()
        gains = np.array([ordering_gain(data, np.random.default_rng([seed, number, n])) for n in range(tries)])
        reach = t_quantile(0.975, tries - 1) * gains.std(ddof=1) / np.sqrt(tries)
        mean, low, high = (float(value) for value in (gains.mean(), gains.mean() - reach, gains.mean() + reach))
        seconds = time.monotonic() - began
        tell("ordering by uncertainty", data=data.name, gain=mean, low=low, high=high, tries=tries, seconds=seconds)


def worst(shares: Sequence[Share]) -> float:
    return max(measured.value for measured in shares)


def pooled(shares: Sequence[Share]) -> float:
    return float(np.mean([measured.value for measured in shares]))


def read_all(*, quick: bool, folder: Path | None) -> list[DataSet]:
    sets, began = [], time.monotonic()
    for data in data_sets(quick=quick, folder=folder):
        tell(data.name, prompts=len(data.prompts()), responses=len(data.features[0]), seconds=time.monotonic() - began)
        sets.append(data)
        began = time.monotonic()
    return sets


def learnt_by(data: DataSet) -> bool:
    answer = learns(data)
    tell("learns", data=data.name, learns=answer)
    return answer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="fewer pairs and tries: under five minutes")
    parser.add_argument("--power", action="store_true", help="only the gate's power by the number of labels")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--features", type=Path, help="a folder that keeps the features for the next time")
    options = parser.parse_args()
    if not DATA.is_dir():
        sys.exit(f"There is no folder {DATA}. Set SHARED_DATA to the folder with the data sets.")
    quick, seed = options.quick, options.seed
    sets = read_all(quick=quick, folder=options.features)
    tell_power(sets, 10 if quick else 40, seed)
    if options.power:
        return
    once = {
        "shuffled_promoted": (shuffled_promoted, 25 if quick else 200),
        "true_promoted": (true_promoted, 10 if quick else 50),
        "curve_covers": (curve_covers, 12 if quick else 100),
    }
    learnt = [learnt_by(data) for data in sets]
    shares = {name: measured_once_per_set(name, try_it, sets, tries, seed) for name, (try_it, tries) in once.items()}
    fitted = 3 if quick else 10
    pairs = [[rivals(data, np.random.default_rng([seed, number])) for number in range(fitted)] for data in sets]
    sizes = (5, 20, 100) if quick else HELD_OUT
    tries = 300 if quick else 4_000
    shares["equal_replaces"] = measured_by_size("equal_replaces", equal_replaces, pairs, sizes, tries, seed)
    shares["worse_replaces"] = measured_by_size("worse_replaces", worse_replaces, pairs, sizes, tries, seed)
    tries = 200 if quick else 1_000
    shares["any_of_20_replaces"] = measured_by_size("any_of_20_replaces", any_of_20_replaces, pairs, sizes, tries, seed)
    shares["true_promoted"] = [one for one, did in zip(shares["true_promoted"], learnt, strict=True) if did]
    if not quick:
        tell_ordering(sets, 30, seed)
    upper = ("shuffled_promoted", "equal_replaces", "worse_replaces", "any_of_20_replaces")
    lower = ("true_promoted", "curve_covers")
    result = {name: round(worst(shares[name]), 4) for name in upper} | {
        name: round(pooled(shares[name]), 4) for name in lower
    }
    order = ("shuffled_promoted", "true_promoted", "equal_replaces", "worse_replaces", "any_of_20_replaces")
    print(json.dumps({name: result[name] for name in (*order, "curve_covers")}))


if __name__ == "__main__":
    main()
