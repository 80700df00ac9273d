"""Counts which two ratings met in a sample; every measure of agreement is made of these counts. Pure numpy.

A sample is one response or segment with its ratings of one attribute, one task with its preferences, or two ranked
responses of a task, in each order, with what each ranking says of them. Counts are whole numbers, kept apart by the
sample's number of ratings, so that they can be added, taken back and weighed exactly.
"""

from dataclasses import dataclass
from enum import IntEnum, StrEnum

import numpy as np
from numpy.typing import NDArray

from annotator.models import AgreementTotal

Ints = NDArray[np.int64]
Records = NDArray[np.void]
Kind = AgreementTotal.Kind

CELLS = 7
"""Steps of the longest scales: preferences, and attributes with seven levels. A table of two ratings has its square."""
RATINGS_BASE = 4096
"""One more than the most ratings that a sample can have."""
BUCKETS = 200
SHARED = 2**32 - 1
"""The key under which raters and pairs count responses, whatever was rated of them."""
_TIED = 3
_LOW = 2**32 - 1
_NONE = np.zeros(0, np.int64)


class Selection(StrEnum):
    """Which annotations are compared. None of a dropped task is among the kept.

    Keeping the closest annotations raises kappa by construction, so all three selections are shown.
    """

    FIRST_THREE = "first_three"
    ALL = "all"
    KEPT = "kept"


SELECTIONS = tuple(Selection)
_ALL = SELECTIONS.index(Selection.ALL)


class PairFlag(IntEnum):
    """Bits of a record: whether its annotation is among the first three of the sample, and among the kept."""

    FIRST_THREE = 1
    KEPT = 2


@dataclass(frozen=True)
class PairColumns:
    """What is compared: the rubric's attributes (0 to levels - 1), a task's preference and whether it is "neither",
    safety, and which of two ranked responses is better.

    The last of the attributes are `aspects`, those of segments.
    """

    attributes: tuple[str, ...]
    ties: bool = True
    """Whether a preference may be a tie, which stands in the middle; without it six strengths are compared."""
    aspects: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.attributes) + 4

    @property
    def preference(self) -> int:
        """The column of preferences: strengths from -3 to 3 as 0 to 6, absent for "neither"."""
        return len(self.attributes)

    @property
    def neither(self) -> int:
        """The column that holds 1 for a preference of "neither" and 0 for any other."""
        return len(self.attributes) + 1

    @property
    def safety(self) -> int:
        """The column of safety verdicts: 0 is unsafe, 1 is safe."""
        return len(self.attributes) + 2

    @property
    def ranking(self) -> int:
        """The column of rankings, of two responses in one order: 0 the first is better, 1 a tie, 2 the second is."""
        return len(self.attributes) + 3

    @property
    def record(self) -> np.dtype[np.void]:
        """The type of a record, which holds what one annotation says about one response, the task, or two responses.

        `response` is 0 for the task, and for two ranked responses a negative number of the two. A value of -1 is
        absent.
        """
        return np.dtype(
            [
                ("task", "<i8"),
                ("response", "<i8"),
                ("annotator", "<i8"),
                ("week", "<i2"),
                ("flags", "u1"),
                ("values", "i1", (len(self),)),
            ]
        )


@dataclass(frozen=True)
class Counts:
    """How often each key occurs with each owner: three columns of one length, in which no owner and key occur twice."""

    owner: Ints
    key: Ints
    count: Ints

    def __len__(self) -> int:
        return len(self.owner)

    def __getitem__(self, rows: NDArray[np.bool_]) -> "Counts":
        return Counts(self.owner[rows], self.key[rows], self.count[rows])

    def taken_back(self) -> "Counts":
        """Returns the negative counts, which take these back when both are added."""
        return Counts(self.owner, self.key, -self.count)

    def of(self, owner: int) -> "Counts":
        """Returns the same counts, summed under one owner."""
        return added(Counts(np.full(len(self), owner, np.int64), self.key, self.count))


def none() -> Counts:
    return Counts(_NONE, _NONE, _NONE)


def added(*parts: Counts) -> Counts:
    """Returns the sum of the parts in the order of owner and key; counts of 0 are left out."""
    # The owner's place and the key in one number, so that one np.unique does it: keys are below 2**32.
    owners, place = np.unique(np.concatenate([part.owner for part in parts]), return_inverse=True)
    codes = place.astype(np.int64) << 32 | np.concatenate([part.key for part in parts])
    codes, place = np.unique(codes, return_inverse=True)
    count = np.bincount(place, np.concatenate([part.count for part in parts]), len(codes)).astype(np.int64)
    counts = Counts(owners[codes >> 32], codes & _LOW, count) if len(codes) else none()
    return counts[counts.count != 0]


def pair_of(one: Ints, other: Ints) -> Ints:
    """Returns the number under which two raters own counts: the lower id in the upper 32 bits, the higher below."""
    return np.minimum(one, other) << 32 | np.maximum(one, other)


# Keys ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Keys:
    """What keys stand for: the selection, the column, the number of ratings in the sample, and the two ratings.

    In samples `low` is never above `high`. For a rater `low` is their own rating, for a pair that of the first of the
    two; there, selection and number of ratings are 0.
    """

    selection: Ints
    column: Ints
    ratings: Ints
    low: Ints
    high: Ints

    @classmethod
    def read(cls, key: Ints, columns: PairColumns) -> "Keys":
        rest, cell = np.divmod(key, CELLS * CELLS)
        rest, ratings = np.divmod(rest, RATINGS_BASE)
        selection, column = np.divmod(rest, len(columns))
        low, high = np.divmod(cell, CELLS)
        if not columns.ties:
            # Without ties the strengths -1 and 1 are neighbours.
            preferred = column == columns.preference
            low, high = (np.where(preferred & (place > _TIED), place - 1, place) for place in (low, high))
        return cls(selection, column, ratings, low, high)


# The reverse of Keys.read. With 20 columns a key stays below 9 million, of the 2**32 that are stored.
def _key(
    columns: PairColumns, *, selection: Ints | int, column: Ints, ratings: Ints | int, low: Ints, high: Ints
) -> Ints:
    sample = (selection * len(columns) + column) * RATINGS_BASE + ratings
    return (sample * CELLS + low) * CELLS + high


# Counting --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Samples:
    """The samples of sorted records: where each starts and its size, and the number of each record's sample."""

    start: Ints
    size: Ints
    number: Ints

    @classmethod
    def from_records(cls, records: Records) -> "Samples":
        task, response = records["task"], records["response"]
        first = np.ones(len(records), bool)
        first[1:] = (task[1:] != task[:-1]) | (response[1:] != response[:-1])
        start = np.flatnonzero(first)
        return cls(start, np.diff(np.append(start, len(records))), np.cumsum(first) - 1)

    def pairs(self) -> tuple[Ints, Ints]:
        """Returns the places of every two records of a sample."""
        place = np.arange(len(self.number))
        remaining = (self.start + self.size)[self.number] - place  # in the sample, this record included
        most = int(self.size.max())
        # A step pairs each record with the one that stands so far behind it: as many steps as the largest sample has
        # records, instead of a loop over samples.
        firsts = [place[remaining > step] for step in range(1, most)]
        seconds = [first + step for step, first in enumerate(firsts, start=1)]
        return np.concatenate([_NONE, *firsts]), np.concatenate([_NONE, *seconds])


@dataclass(frozen=True)
class _RatingPairs:
    """Every two ratings that meet in a sample: the place of the first record, the selection and the key."""

    place: Ints
    selection: Ints
    key: Ints

    def __getitem__(self, pairs: NDArray[np.bool_]) -> "_RatingPairs":
        return _RatingPairs(self.place[pairs], self.selection[pairs], self.key[pairs])

    @classmethod
    def from_records(cls, records: Records, columns: PairColumns) -> "_RatingPairs":
        samples = Samples.from_records(records)
        first, second = samples.pairs()
        values = records["values"].astype(np.int64)
        flags = records["flags"]
        chosen = np.stack(
            [(flags & PairFlag.FIRST_THREE) > 0, np.ones(len(records), bool), (flags & PairFlag.KEPT) > 0]
        )
        present = chosen[:, :, None] & (values >= 0)  # selection, record, column
        ratings = np.add.reduceat(present.astype(np.int64), samples.start, axis=1)  # selection, sample, column
        selection, pair, column = np.nonzero(present[:, first] & present[:, second])
        one, other = values[first[pair], column], values[second[pair], column]
        key = _key(
            columns,
            selection=selection,
            column=column,
            ratings=ratings[selection, samples.number[first[pair]], column],
            low=np.minimum(one, other),
            high=np.maximum(one, other),
        )
        return cls(first[pair], selection, key)

    def counted(self, owner: Ints) -> Counts:
        """Counts the pairs; `owner` holds the owner of each record."""
        return added(Counts(owner[self.place], self.key, np.ones(len(self.key), np.int64)))


def tallied(records: Records, columns: PairColumns) -> dict[Kind, Counts]:
    """Returns the counts of every kind, from records that are sorted by task and response.

    A sample belongs to the week of its latest rating.
    """
    if not len(records):
        return {kind: none() for kind in Kind}
    rating_pairs = _RatingPairs.from_records(records, columns)
    samples = Samples.from_records(records)
    # A task's bucket does not depend on the order in which the tasks were created.
    # Fibonacci hashing: the multiplier is 2**64 divided by the golden ratio, and the upper bits are well mixed.
    mixed = records["task"].astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(40)
    buckets = rating_pairs.counted(mixed.astype(np.int64) % BUCKETS)
    week = np.maximum.reduceat(records["week"].astype(np.int64), samples.start)[samples.number]
    pairs = _of_pairs(records, columns, samples)
    # Responses that a rater shares with anybody, counted once each, however many others have rated them.
    shared = (samples.size[samples.number] > 1) & (records["response"] > 0)
    return {
        Kind.PROJECT: buckets.of(0),
        Kind.BUCKET: buckets,
        Kind.WEEK: rating_pairs[rating_pairs.selection == _ALL].counted(week),
        Kind.PAIR: pairs,
        Kind.RATER: added(*_of_raters(pairs, columns), _once(records["annotator"][shared].astype(np.int64), SHARED)),
    }


def tallied_by_task(records: Records, columns: PairColumns) -> Counts:
    """Returns the counts of samples, of which each task owns its own."""
    if not len(records):
        return none()
    return _RatingPairs.from_records(records, columns).counted(records["task"].astype(np.int64))


def _of_pairs(records: Records, columns: PairColumns, samples: Samples) -> Counts:
    """Counts, for every two raters, which ratings they gave to the same samples, and how many responses they share."""
    one, other = samples.pairs()
    annotator = records["annotator"].astype(np.int64)
    # The rater with the lower id comes first, as in `pair_of`: records of a sample stand in the order of submission.
    swapped = annotator[one] > annotator[other]
    one, other = np.where(swapped, other, one), np.where(swapped, one, other)
    values = records["values"].astype(np.int64)
    pair, column = np.nonzero((values[one] >= 0) & (values[other] >= 0))
    low, high = values[one[pair], column], values[other[pair], column]
    key = _key(columns, selection=0, column=column, ratings=0, low=low, high=high)
    owner = pair_of(annotator[one], annotator[other])
    responses = owner[records["response"][one] > 0]
    return added(Counts(owner[pair], key, np.ones_like(key)), _once(responses, SHARED))


def _of_raters(pairs: Counts, columns: PairColumns) -> tuple[Counts, Counts]:
    """Counts each rater of a pair against the other: the first as stored, the second with both ratings exchanged."""
    pairs = pairs[pairs.key != SHARED]
    keys = Keys.read(pairs.key, columns)
    turned = _key(columns, selection=0, column=keys.column, ratings=0, low=keys.high, high=keys.low)
    return Counts(pairs.owner >> 32, pairs.key, pairs.count), Counts(pairs.owner & _LOW, turned, pairs.count)


def _once(owner: Ints, key: int) -> Counts:
    return Counts(owner, np.full(len(owner), key, np.int64), np.ones(len(owner), np.int64))
