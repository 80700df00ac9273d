"""Ratings of one attribute as lists, one a response; what they come to; how they get into a project."""

from collections.abc import Sequence
from itertools import permutations

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from annotator.models import Project
from annotator.statistics.measures import Tables
from annotator.statistics.pair_counts import Counts, Kind, PairColumns, PairFlag, Records, tallied
from tests.builders import imported, ratings_row

Samples = Sequence[Sequence[int]]
COLUMNS = PairColumns(("helpfulness",))
HELPFULNESS = (1, 0)
"""The place of all annotations' helpfulness in tables of these columns."""

often = settings(max_examples=50, deadline=None)
levels = st.integers(0, 4)
of_one_size = st.integers(2, 5).flatmap(
    lambda raters: st.lists(st.lists(levels, min_size=raters, max_size=raters), min_size=1, max_size=12)
)
of_any_size = st.lists(st.lists(levels, min_size=2, max_size=5), min_size=1, max_size=12)


def varies(samples: Samples) -> bool:
    return len({level for sample in samples for level in sample}) > 1


def ordered_pairs(samples: Samples) -> list[tuple[int, int]]:
    return [pair for sample in samples for pair in permutations(sample, 2)]


def by_definition(samples: Samples) -> float:
    """Cohen's kappa with quadratic weights of a table to which every sample gives the same mass."""
    table = np.zeros((5, 5))
    for sample in samples:
        pairs = list(permutations(sample, 2))
        for a, b in pairs:
            table[a, b] += 1 / len(pairs)
    table /= table.sum()
    weights = np.subtract.outer(np.arange(5), np.arange(5)) ** 2
    chance = np.outer(table.sum(axis=1), table.sum(axis=0))
    return float(1 - (weights * table).sum() / (weights * chance).sum())


def records_of(samples: Samples, *, responses: int = 1) -> Records:
    """Rater n gives the n-th rating; so many samples in a row are of one task."""
    sizes = [len(sample) for sample in samples]
    records = np.zeros(sum(sizes), COLUMNS.record)
    records["response"] = np.repeat(np.arange(len(samples)), sizes) + 1
    records["task"] = (records["response"] - 1) // responses + 1
    records["annotator"] = [rater for size in sizes for rater in range(1, size + 1)]
    records["flags"] = PairFlag.FIRST_THREE | PairFlag.KEPT
    records["values"] = -1
    records["values"][:, 0] = [level for sample in samples for level in sample]
    return records


def counts_of(samples: Samples, kind: Kind) -> Counts:
    return tallied(records_of(samples), COLUMNS)[kind]


def tables_of(samples: Samples) -> Tables:
    return Tables.of(counts_of(samples, Kind.PROJECT), COLUMNS)


def import_samples(project: Project, samples: Samples) -> None:
    imported(project, *(ratings_row(f"p{number}", "a", list(sample)) for number, sample in enumerate(samples)))
