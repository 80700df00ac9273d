"""The protocols that a new project starts from, and how many annotations they ask for."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

NUMBERS = ("base_annotators", "max_annotators", "escalate_above", "keep", "drop_above")
LEVELS = 5
"""The levels of HelpSteer2's scales, for which the spreads of the presets are."""
PUBLISHED_ESCALATED = 0.205
"""The share of HelpSteer2's samples that went to five annotators: 3.41 on average (arXiv 2406.08673, section 2.1)."""


@dataclass(frozen=True)
class Preset:
    """Numbers of the protocol under a name; `title` and `sentence` are in English and translated where they stand."""

    key: str
    title: str
    sentence: str
    numbers: Mapping[str, int]

    def numbers_for(self, levels: int) -> Mapping[str, int]:
        """Returns the numbers where so many levels decide: the spreads, which are for five, in proportion."""
        limits = ("escalate_above", "drop_above")
        spreads = {name: scaled(self.numbers[name], levels=levels, before=LEVELS) for name in limits}
        return {**self.numbers, **spreads}


HELPSTEER2 = Preset(
    "helpsteer2",
    gettext_noop("HelpSteer2: 3 annotators, up to 5"),
    gettext_noop(
        "Three people rate each task. If they are far apart, two more are asked, and the three that are closest to "
        "each other make the label."
    ),
    {"base_annotators": 3, "max_annotators": 5, "escalate_above": 2, "keep": 3, "drop_above": 2},
)
DOUBLE = Preset(
    "double",
    gettext_noop("Double: 2 annotators, both kept"),
    gettext_noop("Two people rate each task, so agreement is known. The label is the mean of both."),
    {"base_annotators": 2, "max_annotators": 2, "escalate_above": 2, "keep": 2, "drop_above": 2},
)
QUICK = Preset(
    "quick",
    gettext_noop("Quick: 1 annotator"),
    gettext_noop("One person rates each task, and that rating is the label. Nobody will know how far people agree."),
    {"base_annotators": 1, "max_annotators": 1, "escalate_above": 2, "keep": 1, "drop_above": 2},
)
PRESETS = {preset.key: preset for preset in (HELPSTEER2, DOUBLE, QUICK)}
OWN = "own"
OWN_TITLE = _("My own numbers")


def scaled(limit: int, *, levels: int, before: int) -> int:
    """Returns a limit of the spread for a scale of so many levels, in proportion to the scale before."""
    return limit * (levels - 1) // (before - 1)


def scaled_limits(escalate: int, drop: int, *, levels: int, before: int) -> tuple[int, int]:
    """Returns the spreads above which more are asked and above which a task is dropped, for another scale."""
    if levels == before:
        return escalate, drop
    # Of yes and no, 0 would drop every task in which anybody disagrees.
    return scaled(escalate, levels=levels, before=before), max(scaled(drop, levels=levels, before=before), min(drop, 1))


@dataclass(frozen=True)
class Workload:
    """The annotations that a number of tasks needs: at least, at most, and as HelpSteer2's share of escalations has it.

    `expected` is None where nothing published says how many tasks such numbers escalate.
    """

    tasks: int
    base: int
    most: int
    expected: int | None

    @property
    def least(self) -> int:
        return self.tasks * self.base

    @property
    def largest(self) -> int:
        return self.tasks * self.most


def workload(numbers: Mapping[str, int], *, tasks: int) -> Workload:
    """Returns how many annotations the tasks will need under these numbers."""
    base, most = numbers["base_annotators"], numbers["max_annotators"]
    same = all(numbers[name] == HELPSTEER2.numbers[name] for name in ("base_annotators", "max_annotators"))
    published = same and numbers["escalate_above"] == HELPSTEER2.numbers["escalate_above"]
    expected = round(tasks * (base + (most - base) * PUBLISHED_ESCALATED)) if published else None
    return Workload(tasks, base, most, expected)
