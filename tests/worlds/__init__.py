"""Small projects in which every two kinds of rubric, of data and of state meet once.

`building` makes a world; the tests beside it look at all of its pages, calls, files and models.
"""

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


WORLDS = [World(*values) for values in AllPairs([RUBRICS, DATA, STATES])]


def by_rubric(worlds: Iterable[World]) -> list[ParameterSet]:
    """The worlds as parameters of a test; those of a rubric stay in one process, which trains its models once."""
    return [pytest.param(one, id=str(one), marks=pytest.mark.xdist_group(f"world {one.rubric}")) for one in worlds]
