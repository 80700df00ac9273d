"""Small projects: 36 of them, in which each kind of rubric, of data and of state meets three others at least.

With WORLDS=1 in the environment it is 108, in which every two kinds meet once. `building` makes a world; the tests
beside it look at all of its pages, calls, files and models.
"""

import math
import os
from collections.abc import Iterable
from typing import NamedTuple

import pytest
from _pytest.mark import ParameterSet
from allpairspy import AllPairs

RUBRICS = (
    "helpsteer2",
    "helpsteer2_and_own",
    "helpsteer2_less_one",
    "one_shared_key",
    "own_levels",
    "yes_no",
    "segments_only",
    "both_scopes",
    "second_version",
)
DATA = (
    "none",
    "imported_labels",
    "imported_raters",
    "own_ratings",
    "partly_rated",
    "ranked",
    "tied",
    "one_response",
    "nine_responses",
    "right_to_left",
    "long_texts",
    "many_segments",
)
STATES = ("new", "running", "complete", "archived", "trained", "two_models", "policy")


class World(NamedTuple):
    """What a project rates by, what it holds, and how far it has come."""

    rubric: str
    data: str
    state: str

    def __str__(self) -> str:
        return "-".join(self)


def _every_pair() -> list[World]:
    return [World(*values) for values in AllPairs([RUBRICS, DATA, STATES])]


def _a_third() -> list[World]:
    # As no two of the three numbers of kinds but 9 and 12 share a factor, 36 rows repeat no pair.
    return [
        World(RUBRICS[row % len(RUBRICS)], DATA[row % len(DATA)], STATES[row % len(STATES)])
        for row in range(math.lcm(len(RUBRICS), len(DATA)))
    ]


WORLDS = _every_pair() if os.environ.get("WORLDS") else _a_third()


def by_rubric(worlds: Iterable[World]) -> list[ParameterSet]:
    """The worlds as parameters of a test; those of a rubric stay in one process, which trains its models once."""
    return [pytest.param(one, id=str(one), marks=pytest.mark.xdist_group(f"world {one.rubric}")) for one in worlds]
