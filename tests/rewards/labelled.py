"""Projects without annotators, whose labels or preferences come with the file: longer responses are better."""

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


def preferred_project(slug: str = "preferred", *, tasks: int = 12, **fields: object) -> Project:
    """HelpSteer2's preferences as they are released, strengths 1 to 3 by turns: no rating anywhere."""
    project = make_project(slug, **{"validation_share": 0.5, **fields})
    dice = random.Random(7)
    imported(project, *(_preferred(dice, number) for number in range(tasks)))
    return project


def _preferred(dice: random.Random, number: int) -> dict[str, object]:
    """The better response is the one that answers; the lengths say nothing."""
    texts = (" ".join(dice.choice(WORDS) for _ in range(dice.randint(6, 40))) for _ in range(2))
    bad, good = (
        f"{beginning} {text}." for beginning, text in zip(("No, sorry, I refuse:", "Gladly:"), texts, strict=True)
    )
    prompt, strength = f"Question {number}: what is it?", 1 + number % 3
    return {"prompt": prompt, "response_1": bad, "response_2": good, "preference_strength": strength}
