"""Figures of the labels in a release, added up row by row: whole numbers, so that their order never matters."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

FEWEST = 3
"""Responses from which on a correlation says anything."""


@dataclass
class Sums:
    """What a mean, a deviation and a correlation are made of: sums over pairs of scores."""

    count: int = 0
    x: int = 0
    y: int = 0
    xx: int = 0
    yy: int = 0
    xy: int = 0

    def add(self, x: int, y: int) -> None:
        self.count += 1
        self.x, self.y = self.x + x, self.y + y
        self.xx, self.yy, self.xy = self.xx + x * x, self.yy + y * y, self.xy + x * y

    def mean(self) -> float | None:
        return self.x / self.count if self.count else None

    def deviation(self) -> float | None:
        """Returns the standard deviation of the population."""
        return sqrt(self.count * self.xx - self.x**2) / self.count if self.count else None

    def correlation(self) -> float | None:
        """Returns Pearson's r; None of few scores, or where one side never varies."""
        widths = (self.count * self.xx - self.x**2) * (self.count * self.yy - self.y**2)
        if self.count < FEWEST or not widths:
            return None
        return (self.count * self.xy - self.x * self.y) / sqrt(widths)


class LabelStatistics:
    """Means and deviations of each attribute, its correlation with the deciding one, and the lengths of texts.

    The rows of a task come one after the other; its prompt counts once.
    """

    def __init__(self, attributes: Sequence[str], *, deciding: str) -> None:
        self.responses = self.prompts = self.response_characters = self.prompt_characters = 0
        self.scores = {key: Sums() for key in attributes}
        self.with_deciding = {key: Sums() for key in attributes}
        self._deciding = deciding
        self._task: int | None = None

    def add(self, task: int, row: dict[str, Any]) -> None:
        self.responses += 1
        self.response_characters += len(row["response"])
        if task != self._task:
            self._task = task
            self.prompts += 1
            self.prompt_characters += len(row["prompt"])
        for key in self.scores:
            if (score := row.get(key)) is not None:
                self.scores[key].add(score, 0)
                if (decides := row.get(self._deciding)) is not None:
                    self.with_deciding[key].add(score, decides)

    def mean_prompt(self) -> float | None:
        return self.prompt_characters / self.prompts if self.prompts else None

    def mean_response(self) -> float | None:
        return self.response_characters / self.responses if self.responses else None
