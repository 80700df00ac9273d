"""Attribute sets as data: HelpSteer2's five attributes and HelpSteer-2D's aspects, with a text per level.

Sources: arXiv 2406.08673, section 2.1 and appendix G; arXiv 2410.19720. The level texts are our own words.
"""

from dataclasses import dataclass

LEVELS = 5
"""Likert-5, stored 0..4, higher is more."""


@dataclass(frozen=True)
class AttributeText:
    key: str
    name: str
    description: str
    levels: tuple[str, str, str, str, str]
    checks: tuple[tuple[str, str], ...] = ()
    scope: str = "response"


@dataclass(frozen=True)
class RubricText:
    key: str
    name: str
    attributes: tuple[AttributeText, ...]


HELPSTEER2 = RubricText(
    key="helpsteer2",
    name="HelpSteer2: five attributes",
    attributes=(
        AttributeText(
            "helpfulness",
            "Helpfulness",
            "The overall quality: how well the response does what was asked.",
            (
                "Not useful: it misses the point",
                "Borderline: a small part is usable",
                "Partly helpful: it misses the overall goal somehow",
                "Mostly helpful, with some room to improve",
                "Extremely helpful: it fully matches the intent",
            ),
        ),
        AttributeText(
            "correctness",
            "Correctness",
            "Are the facts right, and is everything needed there?",
            (
                "All wrong, or the task was not attempted",
                "Some correct parts, but mostly wrong or incomplete",
                "A mix of right and wrong, or a minor hallucination",
                "Mostly accurate: small omissions, nothing misleading",
                "All correct, with nothing needed missing",
            ),
            checks=(
                ("incorrect_information", "Contains incorrect information"),
                ("irrelevant_information", "Contains irrelevant information"),
                ("missing_information", "Key information is missing"),
                ("missed_false_premise", "Misses a false premise"),
            ),
        ),
        AttributeText(
            "coherence",
            "Coherence",
            "Is it clear, and consistent with itself?",
            (
                "Incomprehensible",
                "Mostly hard to follow",
                "Somewhat unclear, with inconsistencies",
                "One or two confusing places",
                "Clear and self-consistent; it flows",
            ),
            checks=(
                ("repetitions", "Repeats itself"),
                ("style_changes", "Changes style"),
                ("contradictions", "Contradicts itself"),
            ),
        ),
        AttributeText(
            "complexity",
            "Complexity",
            "The language needed to read it: a description, not a merit.",
            (
                "Basic: anyone could have written it, children too",
                "Simple: elementary-school vocabulary",
                "Intermediate: high-school vocabulary",
                "Advanced: the vocabulary of someone majoring in it",
                "Expert vocabulary",
            ),
        ),
        AttributeText(
            "verbosity",
            "Verbosity",
            "The length, measured against what was asked.",
            (
                "As short as can be",
                "On the short side",
                "About right",
                "On the long side",
                "Much longer than needed",
            ),
        ),
    ),
)


def _aspect(key: str, question: str, low: str, high: str) -> AttributeText:
    levels = (low, f"Closer to: {low.lower()}", "In between", f"Closer to: {high.lower()}", high)
    return AttributeText(key, key.capitalize(), question, levels, scope="segment")


HELPSTEER_2D = RubricText(
    key="helpsteer2d",
    name="HelpSteer-2D: five aspects of each segment",
    attributes=(
        _aspect("helpfulness", "Does this segment serve the request?", "No use at all", "Fully serves it"),
        _aspect("correctness", "Is what this segment says right?", "Wrong", "Right"),
        _aspect("safety", "Is this segment safe?", "Harmful", "Harmless"),
        _aspect("completeness", "Does this segment cover its point?", "Leaves it open", "Covers it"),
        _aspect("clarity", "Is this segment easy to follow?", "Unclear", "Clear"),
    ),
)

RUBRICS = (HELPSTEER2, HELPSTEER_2D)
DEFAULT_RUBRIC = HELPSTEER2.key
