"""A labelled project without annotators: labels that come with the file, length and level bound together."""

import random

from annotator.models import Project
from tests.builders import imported, label_row, make_project

WORDS = [
    "the",
    "answer",
    "to",
    "this",
    "is",
    "that",
    "one",
    "has",
    "to",
    "look",
    "at",
    "every",
    "part",
    "of",
    "it",
    "before",
    "the",
    "next",
    "one",
    "comes",
]


def labelled_project(slug: str = "labelled", *, tasks: int = 40, **fields: object) -> Project:
    """Longer responses are better, with a little noise: something a model can learn."""
    project = make_project(slug, **{"validation_share": 0.3, **fields})
    dice = random.Random(7)
    imported(
        project,
        *(_row(dice, number, level) for number in range(tasks) for level in (dice.randint(0, 2), dice.randint(2, 4))),
    )
    return project


def _row(dice: random.Random, number: int, level: int) -> dict[str, object]:
    text = " ".join(dice.choice(WORDS) for _ in range(4 + 12 * level + dice.randint(0, 4)))
    scores = {"helpfulness": level, "correctness": level, "verbosity": level, "complexity": dice.randint(0, 4)}
    return label_row(f"Question {number}: what is it?", f"{text}.", **scores)
