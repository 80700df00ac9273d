"""Twenty raters whose faults are known, and how well they agree, as the flags get to know both."""

from dataclasses import dataclass
from enum import Enum

import numpy as np

from annotator.analysis.quality.flags import Flag, Measured, flagged
from annotator.analysis.quality.measurements import WithOthers, measured
from annotator.analysis.quality.patterns import CHARACTERS_A_WORD, WORDS_A_MINUTE
from annotator.analysis.quality.work_arrays import AnnotationArrays, Array

ATTRIBUTES = ("helpfulness", "correctness", "coherence", "complexity", "verbosity")
RESPONSES, LEVELS, OVERLAP = 2, 5, 3
PAGE = WORDS_A_MINUTE * CHARACTERS_A_WORD
"""Characters that take a minute to read: so long is every task."""
USUAL_NOISE, MUCH_NOISE = (0.55, 0.85), 1.6
HASTY_SHARE = 0.5
"""Of their tasks hasty raters read so many; the others get a score between all levels within seconds."""


class Fault(Enum):
    NONE = "none"
    RANDOM = "random"
    NOISY = "noisy"
    HASTY = "hasty"


FAULTS = [Fault.RANDOM] * 3 + [Fault.NOISY] * 3 + [Fault.HASTY] * 3 + [Fault.NONE] * 11


@dataclass(frozen=True)
class Crew:
    """The work of the twenty, of whom each has rated about `each` tasks, three raters a task."""

    work: AnnotationArrays
    lengths: dict[int, int]
    with_others: dict[int, WithOthers]

    def measured(self) -> list[Measured]:
        return measured(self.work, self.lengths, self.with_others)

    def flags(self) -> list[list[Flag]]:
        return flagged(self.measured())


def crew(seed: int, *, each: int, faults: list[Fault] = FAULTS, imported: bool = False) -> Crew:
    dice = np.random.default_rng([seed, each])
    count = len(faults)
    tasks = round(each * count / OVERLAP)
    rater = np.concatenate([dice.permutation(count) for _ in range(-(-tasks * OVERLAP // count))])[: tasks * OVERLAP]
    task = np.repeat(np.arange(tasks), OVERLAP)
    records = _records(task, rater, imported=imported)
    fault = np.array([fault.value for fault in faults])[rater]
    careless = (fault == "random") | ((fault == "hasty") & (dice.random(len(rater)) > HASTY_SHARE))
    noise = np.where(fault == "noisy", MUCH_NOISE, dice.uniform(*USUAL_NOISE, count)[rater])
    scores = _scores(dice, task, noise, careless, count, rater)
    records["active"] = np.where(
        (fault == "hasty") & careless, dice.uniform(4, 12, len(rater)), dice.uniform(40, 120, len(rater))
    )
    first = dice.integers(0, 2, len(rater))
    records["first"] = -1 if imported else first
    records["preference"] = np.sign(scores[:, 0, 0] - scores[:, 1, 0])
    ratings = np.empty(
        len(rater) * RESPONSES, [("annotation", "i4"), ("response", "i8"), ("scores", "i1", (len(ATTRIBUTES),))]
    )
    ratings["annotation"] = np.repeat(np.arange(len(rater)), RESPONSES)
    ratings["response"] = (task[:, None] * RESPONSES + np.arange(RESPONSES)).ravel()
    ratings["scores"] = scores.reshape(-1, len(ATTRIBUTES))
    work = AnnotationArrays(ATTRIBUTES, np.arange(count), records, ratings)
    return Crew(work, dict.fromkeys(range(tasks), PAGE), _with_others(work))


def _records(task: Array, rater: Array, *, imported: bool) -> Array:
    kinds = [("annotation", "i8"), ("task", "i8"), ("annotator", "i8"), ("submitted", "f8"), ("counts", "?")]
    kinds += [("imported", "?"), ("active", "f4"), ("preference", "i1"), ("first", "i1")]
    records = np.zeros(len(rater), kinds)
    records["annotation"] = records["submitted"] = np.arange(len(rater))
    records["task"], records["annotator"], records["counts"], records["imported"] = task, rater, True, imported
    return records


def _scores(dice: np.random.Generator, task: Array, noise: Array, careless: Array, count: int, rater: Array) -> Array:
    """[annotations, responses, attributes]: half of what a response deserves is common to its attributes."""
    tasks = task.max() + 1
    common = dice.normal(0, 0.65, (tasks, RESPONSES, 1))
    deserved = 2.3 + common + dice.normal(0, 0.65, (tasks, RESPONSES, len(ATTRIBUTES)))
    leaning = dice.normal(0, 0.25, (count, 1, len(ATTRIBUTES)))
    given = (
        deserved[task]
        + leaning[rater]
        + dice.normal(0, 1, (len(task), RESPONSES, len(ATTRIBUTES))) * noise[:, None, None]
    )
    by_chance = dice.integers(0, LEVELS, given.shape)
    return np.where(careless[:, None, None], by_chance, np.clip(np.rint(given), 0, LEVELS - 1)).astype(int)


def _with_others(work: AnnotationArrays) -> dict[int, WithOthers]:
    """Quadratic-weighted kappa of each rater with all others of the same responses, as the agreement report has it."""
    order = np.argsort(work.ratings["response"], kind="stable")
    rater = work.annotations["annotator"][work.ratings["annotation"][order]].reshape(-1, OVERLAP)
    scores = work.ratings["scores"][order].astype(float).reshape(-1, OVERLAP, len(ATTRIBUTES))
    agreements = {}
    for person in work.annotators.tolist():
        row, place = np.nonzero(rater == person)
        own = np.repeat(scores[row, place], OVERLAP - 1, axis=0)
        theirs = np.concatenate([np.delete(scores[one], at, axis=0) for one, at in zip(row, place, strict=True)])
        by_chance = own.var(0) + theirs.var(0) + (own.mean(0) - theirs.mean(0)) ** 2
        kappa = 1 - ((own - theirs) ** 2).mean(0) / by_chance
        agreements[person] = WithOthers(float(kappa.mean()), len(row))
    return agreements
