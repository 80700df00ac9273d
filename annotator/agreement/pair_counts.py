"""From the ratings of tasks to counts of which two ratings met, which every measure of agreement is made of.

A sample is one response with its ratings of one attribute, one task with its preferences, or two ranked responses of a
task, in each order, with what each ranking says of them. Counts are whole numbers, kept apart by the sample's number of
ratings, so that they can be added, taken back and weighed exactly. Pure numpy.
"""

from dataclasses import dataclass
from enum import IntEnum, StrEnum

import numpy as np
from numpy.typing import NDArray

from annotator.models import AgreementTotal

Ints = NDArray[np.int64]
Records = NDArray[np.void]
Kind = AgreementTotal.Kind

LEVELS = 5
CELLS = 6
"""Steps of the longest scale, that of preferences; a table of two ratings has CELLS * CELLS places."""
MOST_RATINGS = 4096
"""Of one sample, and one less."""
BUCKETS = 200
SHARED = 2**32 - 1
"""The key under which raters and pairs count responses, whatever was rated of them."""
_LOW = 2**32 - 1
_NONE = np.zeros(0, np.int64)


class Selection(StrEnum):
    """Which annotations count; those of dropped tasks are not kept.

    Keeping the closest raises kappa by construction, so all three are shown.
    """

    FIRST_THREE = "first_three"
    ALL = "all"
    KEPT = "kept"


SELECTIONS = tuple(Selection)
_ALL = SELECTIONS.index(Selection.ALL)


class Flag(IntEnum):
    """Bits of a record: whether its annotation is among the first three of the sample, and among the kept."""

    FIRST_THREE = 1
    KEPT = 2


@dataclass(frozen=True)
class Columns:
    """What is compared: the rubric's attributes (0..4), a task's preference and whether it is "neither", safety, and
    which of two ranked responses is better.
    """

    attributes: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.attributes) + 4

    @property
    def preference(self) -> int:
        """The six strengths as 0..5; absent for "neither"."""
        return len(self.attributes)

    @property
    def neither(self) -> int:
        """0 or 1, for each who was asked to prefer."""
        return len(self.attributes) + 1

    @property
    def safety(self) -> int:
        """The column of safety verdicts: 0 is unsafe, 1 is safe."""
        return len(self.attributes) + 2

    @property
    def ranking(self) -> int:
        """Of two responses in one order: 0 the first is better, 1 they are tied, 2 the second is."""
        return len(self.attributes) + 3

    @property
    def record(self) -> np.dtype[np.void]:
        """One annotation's word on one response, or on the task: then `response` is 0; on two that are ranked it is
        negative, a number for each two. A value of -1 is absent."""
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
    """How often each key occurs with each owner: columns of one length, an owner and a key together once."""

    owner: Ints
    key: Ints
    count: Ints

    def __len__(self) -> int:
        return len(self.owner)

    def __getitem__(self, rows: NDArray[np.bool_]) -> "Counts":
        return Counts(self.owner[rows], self.key[rows], self.count[rows])

    def taken_back(self) -> "Counts":
        return Counts(self.owner, self.key, -self.count)

    def of(self, owner: int) -> "Counts":
        """The same counts, all under one owner."""
        return added(Counts(np.full(len(self), owner, np.int64), self.key, self.count))


def none() -> Counts:
    return Counts(_NONE, _NONE, _NONE)


def added(*parts: Counts) -> Counts:
    """The sum of the parts, in the order of owner and key; what adds up to 0 is left out."""
    owners, place = np.unique(np.concatenate([part.owner for part in parts]), return_inverse=True)
    codes = place.astype(np.int64) << 32 | np.concatenate([part.key for part in parts])
    codes, place = np.unique(codes, return_inverse=True)
    count = np.bincount(place, np.concatenate([part.count for part in parts]), len(codes)).astype(np.int64)
    counts = Counts(owners[codes >> 32], codes & _LOW, count) if len(codes) else none()
    return counts[counts.count != 0]


def pair_of(one: Ints, other: Ints) -> Ints:
    """The owner's number of a pair of raters, the lower id first."""
    return np.minimum(one, other) << 32 | np.maximum(one, other)


def bucket_of(task: Ints) -> Ints:
    """Spreads tasks over the buckets, whatever order they came in."""
    return (task.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(40)).astype(np.int64) % BUCKETS


# Keys ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Keys:
    """What a key says: of which selection and column, of samples with how many ratings, which two ratings met.

    Without an order `low` is never above `high`; of a rater and of a pair, `low` is the rater's, or the first one's,
    and neither selection nor number of ratings is told.
    """

    selection: Ints
    column: Ints
    ratings: Ints
    low: Ints
    high: Ints

    @classmethod
    def read(cls, key: Ints, columns: Columns) -> "Keys":
        rest, cell = np.divmod(key, CELLS * CELLS)
        rest, ratings = np.divmod(rest, MOST_RATINGS)
        selection, column = np.divmod(rest, len(columns))
        low, high = np.divmod(cell, CELLS)
        return cls(selection, column, ratings, low, high)


def _key(columns: Columns, *, selection: Ints | int, column: Ints, ratings: Ints | int, low: Ints, high: Ints) -> Ints:
    sample = (selection * len(columns) + column) * MOST_RATINGS + ratings
    return (sample * CELLS + low) * CELLS + high


# Counting --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Samples:
    """Records by sample, that is by task and response: where each sample starts, its size, each record's sample."""

    start: Ints
    size: Ints
    of: Ints

    @classmethod
    def from_records(cls, records: Records) -> "_Samples":
        task, response = records["task"], records["response"]
        first = np.ones(len(records), bool)
        first[1:] = (task[1:] != task[:-1]) | (response[1:] != response[:-1])
        start = np.flatnonzero(first)
        return cls(start, np.diff(np.append(start, len(records))), np.cumsum(first) - 1)

    def pairs(self) -> tuple[Ints, Ints]:
        """The places of every two records of a sample."""
        place = np.arange(len(self.of))
        left = (self.start + self.size)[self.of] - place
        most = int(self.size.max())
        step_pairs = [(place[left > step], place[left > step] + step) for step in range(1, most)] or [(_NONE, _NONE)]
        return np.concatenate([first for first, _ in step_pairs]), np.concatenate([second for _, second in step_pairs])


@dataclass(frozen=True)
class _Met:
    """Every meeting of two ratings in a sample: the place of its first record, its selection and its key."""

    place: Ints
    selection: Ints
    key: Ints

    @classmethod
    def from_records(cls, records: Records, columns: Columns) -> "_Met":
        samples = _Samples.from_records(records)
        first, second = samples.pairs()
        values = records["values"].astype(np.int64)
        flags = records["flags"]
        chosen = np.stack([(flags & Flag.FIRST_THREE) > 0, np.ones(len(records), bool), (flags & Flag.KEPT) > 0])
        present = chosen[:, :, None] & (values >= 0)  # selection, record, column
        ratings = np.add.reduceat(present.astype(np.int64), samples.start, axis=1)  # selection, sample, column
        selection, pair, column = np.nonzero(present[:, first] & present[:, second])
        one, other = values[first[pair], column], values[second[pair], column]
        key = _key(
            columns,
            selection=selection,
            column=column,
            ratings=ratings[selection, samples.of[first[pair]], column],
            low=np.minimum(one, other),
            high=np.maximum(one, other),
        )
        return cls(first[pair], selection, key)

    def counted(self, owner: Ints) -> Counts:
        """Counts the records, keyed by their owner."""
        return added(Counts(owner[self.place], self.key, np.ones(len(self.key), np.int64)))

    def of_all(self) -> "_Met":
        """Those of the selection that leaves nobody out."""
        chosen = self.selection == _ALL
        return _Met(self.place[chosen], self.selection[chosen], self.key[chosen])


def tallied(records: Records, columns: Columns) -> dict[Kind, Counts]:
    """The counts of these tasks, of every kind. The records stand by task, then response.

    A sample belongs to the week of its latest rating.
    """
    if not len(records):
        return {kind: none() for kind in Kind}
    met = _Met.from_records(records, columns)
    samples = _Samples.from_records(records)
    buckets = met.counted(bucket_of(records["task"]))
    pairs = _of_pairs(records, columns, samples)
    return {
        Kind.PROJECT: buckets.of(0),
        Kind.BUCKET: buckets,
        Kind.WEEK: met.of_all().counted(
            np.maximum.reduceat(records["week"].astype(np.int64), samples.start)[samples.of]
        ),
        Kind.PAIR: pairs,
        Kind.RATER: added(*_of_raters(pairs, columns), _shared(records, samples)),
    }


def tallied_by_task(records: Records, columns: Columns) -> Counts:
    """The counts of samples, each task an owner."""
    return _Met.from_records(records, columns).counted(records["task"].astype(np.int64)) if len(records) else none()


def _of_pairs(records: Records, columns: Columns, samples: _Samples) -> Counts:
    """Who gave what when the other gave what, and how many responses both have rated."""
    one, other = samples.pairs()
    annotator = records["annotator"].astype(np.int64)
    swapped = annotator[one] > annotator[other]
    one, other = np.where(swapped, other, one), np.where(swapped, one, other)
    values = records["values"].astype(np.int64)
    pair, column = np.nonzero((values[one] >= 0) & (values[other] >= 0))
    low, high = values[one[pair], column], values[other[pair], column]
    key = _key(columns, selection=0, column=column, ratings=0, low=low, high=high)
    owner = pair_of(annotator[one], annotator[other])
    responses = owner[records["response"][one] > 0]
    return added(Counts(owner[pair], key, np.ones_like(key)), _once(responses, SHARED))


def _of_raters(pairs: Counts, columns: Columns) -> tuple[Counts, Counts]:
    """Each of a pair against the other."""
    pairs = pairs[pairs.key != SHARED]
    said = Keys.read(pairs.key, columns)
    turned = _key(columns, selection=0, column=said.column, ratings=0, low=said.high, high=said.low)
    return Counts(pairs.owner >> 32, pairs.key, pairs.count), Counts(pairs.owner & _LOW, turned, pairs.count)


def _shared(records: Records, samples: _Samples) -> Counts:
    """How many responses each rater has in common with somebody."""
    chosen = (samples.size[samples.of] > 1) & (records["response"] > 0)
    return _once(records["annotator"][chosen].astype(np.int64), SHARED)


def _once(owner: Ints, key: int) -> Counts:
    return Counts(owner, np.full(len(owner), key, np.int64), np.ones(len(owner), np.int64))
