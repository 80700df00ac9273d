"""Finds what annotations show by themselves: hurry, one score throughout, repeated scores, a preferred side.

All results are arrays over the annotations of a `AnnotationArrays`, or over its annotators.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from annotator.analysis.quality.work_arrays import AnnotationArrays, Array
from annotator.models import NEITHER_VALID

WORDS_A_MINUTE = 238
"""Silent reading of English prose: Brysbaert, J. of Memory and Language 109 (2019) 104047."""
CHARACTERS_A_WORD = 6
HURRY = 4
"""How many times faster than that an annotator is who cannot have read the texts."""
SHORTEST, LONGEST = 5.0, 600.0
"""Seconds of reading. Texts that take less say nothing about hurry; nobody is expected to read for longer."""
FEWEST_SCORES = 4


def of_each(work: AnnotationArrays, values: Array) -> Array:
    """Sums the values of each annotator."""
    sums: Array = np.bincount(work.annotations["annotator"], values, len(work.annotators))
    return sums


# Hurry -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Hurry:
    """For each annotation: whether its time says anything, and whether it was too short for reading the texts."""

    timed: Array
    hurried: Array


def hurry(work: AnnotationArrays, lengths: Mapping[int, int]) -> Hurry:
    """Finds hurried annotations from the number of characters of each task.

    Imported annotations are left out, because other tools count time in their own ways.
    """
    tasks, place = np.unique(work.annotations["task"], return_inverse=True)
    characters = np.array([lengths.get(task, 0) for task in tasks.tolist()], float)[place]
    reading = np.minimum(characters / CHARACTERS_A_WORD / WORDS_A_MINUTE * 60, LONGEST)
    active = work.annotations["active"]
    timed = (active >= 0) & ~work.annotations["imported"] & (reading >= SHORTEST)
    return Hurry(timed, timed & (active * HURRY < reading))


def median_seconds(work: AnnotationArrays) -> Array:
    """Returns each annotator's median time on the page in seconds, NaN if no time is known."""
    # Sorted once, so that the medians of all annotators are read at computed places, without a loop over people.
    known = work.annotations[(work.annotations["active"] >= 0) & ~work.annotations["imported"]]
    known = known[np.lexsort((known["active"], known["annotator"]))]
    size = np.bincount(known["annotator"], minlength=len(work.annotators))
    begin = np.cumsum(size) - size
    values = np.full(len(work.annotators), np.nan)
    some = size > 0
    lower, upper = begin + (size - 1) // 2, begin + size // 2
    values[some] = (known["active"][lower[some]] + known["active"][upper[some]]) / 2
    return values


# Same score everywhere --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sameness:
    """How often annotators give one score to everything.

    `unlike` says for each annotation whether its scores are all the same while no other one's of the task are. By
    annotator, `compared` counts tasks that somebody else has rated too, `own` those of them with one score throughout,
    and `expected` how many these would be if the annotator had done as the others did.
    """

    unlike: Array
    compared: Array
    own: Array
    expected: Array


def sameness(work: AnnotationArrays) -> Sameness:
    """Compares each annotation with the others' of the same task."""
    flat = _is_flat(work)
    _, task = np.unique(work.annotations["task"], return_inverse=True)
    others = np.bincount(task)[task] - 1
    flat_others = np.bincount(task, flat)[task] - flat
    shared = others > 0
    share = np.divide(flat_others, others, out=np.zeros(len(flat)), where=shared)
    unlike = flat & shared & (flat_others == 0)
    return Sameness(unlike, of_each(work, shared), of_each(work, shared & flat), of_each(work, share))


def _is_flat(work: AnnotationArrays) -> Array:
    if not len(work.annotations):
        return np.empty(0, bool)
    scores, begins = work.ratings["scores"], _begins(work)
    number = np.add.reduceat((scores >= 0).sum(1), begins)
    # With initial values, as a rubric may have no attribute of whole responses: min and max of nothing would raise.
    least = np.minimum.reduceat(np.where(scores >= 0, scores, 127).min(1, initial=127), begins)
    most = np.maximum.reduceat(scores.max(1, initial=-1), begins)
    flat: Array = (least == most) & (number >= FEWEST_SCORES)
    return flat


def _begins(work: AnnotationArrays) -> Array:
    """Returns the index at which each annotation's ratings begin."""
    return np.flatnonzero(np.diff(work.ratings["annotation"], prepend=-1))


# Identical ratings in a row ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Repeats:
    """Runs of annotations with exactly the same scores.

    By annotator, `longest` is the length of the longest run, `longest_run` its number, and `alike` the chance that two
    annotations of others have the same scores. `runs` is the number of the run in which each annotation stands.
    """

    longest: Array
    alike: Array
    runs: Array
    longest_run: Array


def repeats(work: AnnotationArrays) -> Repeats:
    """Finds runs in the order of submission. Imported annotations are in none, because they all came at once."""
    vectors = _vectors(work)
    order = np.lexsort((work.annotations["annotation"], work.annotations["submitted"], work.annotations["annotator"]))
    annotator, vector = work.annotations["annotator"][order], vectors[order]
    begins_run = np.ones(len(order), bool)
    begins_run[1:] = (annotator[1:] != annotator[:-1]) | (vector[1:] != vector[:-1])
    run = np.cumsum(begins_run) - 1
    size = np.bincount(run, ~work.annotations["imported"][order])
    runs = np.empty(len(order), int)
    runs[order] = run
    owner = annotator[begins_run]
    # By owner, then by size: the last run of each owner is the longest.
    by_size = np.lexsort((size, owner))
    longest_run = by_size[np.flatnonzero(np.diff(owner[by_size], append=-1))]
    return Repeats(size[longest_run], _alike_by_chance(work, vectors), runs, longest_run)


def _vectors(work: AnnotationArrays) -> Array:
    """Returns a number for all scores of each annotation, in the order of the responses: the same for equal scores."""
    if not len(work.annotations):
        return np.empty(0, np.int64)
    begins = _begins(work)
    place = np.arange(len(work.ratings)) - begins[work.ratings["annotation"]]
    # A polynomial hash modulo 2**64. With 2 added, a missing score (-1) is a digit as well, and not 0.
    digits = work.ratings["scores"].astype(np.uint64) + np.uint64(2)
    powers = np.uint64(1_000_003) ** np.arange(1, digits.shape[1] + 1, dtype=np.uint64)
    mixed = (digits * powers).sum(1) * (place.astype(np.uint64) * np.uint64(2_654_435_761) + np.uint64(1))
    number: Array = np.unique(np.add.reduceat(mixed, begins), return_inverse=True)[1]
    return number


def _alike_by_chance(work: AnnotationArrays, vectors: Array) -> Array:
    """Returns, by annotator, the chance that two annotations of others have the same scores; NaN without others."""
    annotator, count = work.annotations["annotator"].astype(np.int64), len(work.annotators)
    own, times = np.unique(annotator * (vectors.max(initial=0) + 1) + vectors, return_counts=True)
    owner, vector = np.divmod(own, vectors.max(initial=0) + 1)
    every = np.bincount(vectors) if len(vectors) else np.zeros(1)
    # The sum of (all - own)^2 over the kinds of scores, expanded: only kinds that an annotator has used need a term.
    pairs = (every**2).sum() + np.bincount(owner, times * (times - 2 * every[vector]), count)
    others = len(vectors) - np.bincount(annotator, minlength=count)
    alike: Array = np.divide(pairs, others.astype(float) ** 2, out=np.full(count, np.nan), where=others > 0)
    return alike


# A side that is preferred ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Position:
    """Counts, by annotator, preferences whose order on the page is known, and those for the response shown first."""

    preferences: Array
    first: Array


def position(work: AnnotationArrays) -> Position:
    """Counts them without imported annotations: nobody knows in which order their responses were shown."""
    preference, shown = work.annotations["preference"], work.annotations["first"]
    stated = (preference != 0) & (preference != NEITHER_VALID) & (shown >= 0) & ~work.annotations["imported"]
    preferred = (preference > 0).astype(int)
    return Position(of_each(work, stated), of_each(work, stated & (preferred == shown)))
