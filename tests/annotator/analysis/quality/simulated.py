"""Raters whose leaning and scatter are known, and works of single annotations."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from annotator.analysis.quality.rater_effects import Effects, Floats, Ints, rater_effects
from annotator.analysis.quality.work_arrays import AnnotationArrays

ATTRIBUTES = ("helpfulness", "verbosity")


class Simulation:
    """So many responses, each rated by a few of the raters, on the whole levels 0 to 4 unless it is `exact`."""

    def __init__(
        self,
        leaning: Sequence[float],
        scatter: Sequence[float],
        *,
        responses: int = 600,
        per_response: int = 3,
        exact: bool = False,
    ) -> None:
        dice = np.random.default_rng(7)
        self.count = len(leaning)
        self.items: Ints = np.repeat(np.arange(responses), per_response)
        self.raters: Ints = np.concatenate(
            [dice.choice(self.count, per_response, replace=False) for _ in range(responses)]
        )
        deserved = dice.normal(2, 0.9, responses)[self.items]
        noise = dice.normal(0, 1, len(self.items)) * np.array(scatter)[self.raters]
        self.scores: Floats = deserved + np.array(leaning)[self.raters] + noise
        if not exact:
            self.scores = np.clip(np.rint(self.scores), 0, 4)

    def replaced(self, rater: int, scores: Floats | Ints) -> None:
        """The rater gives these scores instead."""
        self.scores[self.raters == rater] = scores

    def of(self, rater: int) -> int:
        return int((self.raters == rater).sum())

    def fitted(self) -> Effects:
        return rater_effects(self.items, self.raters, self.scores, count=self.count)


def work(*annotations: dict[str, Any]) -> AnnotationArrays:
    """From dicts {task, annotator, scores: a list a response, ...}; annotators are named by numbers."""
    kinds = [("annotation", "i8"), ("task", "i8"), ("annotator", "i8"), ("submitted", "f8"), ("counts", "?")]
    kinds += [("imported", "?"), ("active", "f4"), ("preference", "i1"), ("first", "i1")]
    records = np.zeros(len(annotations), kinds)
    records["annotation"] = records["submitted"] = np.arange(len(annotations)) + 1
    records["counts"], records["active"], records["first"] = True, -1, -1
    ratings = []
    for place, annotation in enumerate(annotations):
        for name, value in annotation.items():
            if name != "scores":
                records[name][place] = value
        given = annotation.get("scores", [[2, 2]])
        ratings += [(place, 100 * annotation["task"] + number, scores) for number, scores in enumerate(given)]
    annotators, records["annotator"] = np.unique(records["annotator"], return_inverse=True)
    kind = [("annotation", "i4"), ("response", "i8"), ("scores", "i1", (len(ATTRIBUTES),))]
    return AnnotationArrays(ATTRIBUTES, annotators, records, np.array(ratings, kind))
