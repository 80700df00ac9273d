"""Holds the rubrics that come with the product as data: HelpSteer2's, HelpSteer-2D's and general ones.

Sources: arXiv 2406.08673, section 2.1 and appendix G; arXiv 2410.19720; helpful and harmless: arXiv 2204.05862. The
texts are our own words. They are stored in English and translated where annotators see them.
"""

from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_noop as _

from annotator.models import Attribute, Rubric


@dataclass(frozen=True)
class AttributeText:
    """An attribute as somebody writes it: see models.Attribute."""

    key: str
    name: str
    levels: tuple[str, ...]
    description: str = ""
    checks: tuple[tuple[str, str], ...] = ()
    scope: str = Attribute.Scope.RESPONSE
    weight: float | None = None

    @classmethod
    def of(cls, row: Attribute) -> "AttributeText":
        checks = tuple((key, text) for key, text in row.checks)
        return cls(row.key, row.name, tuple(row.levels), row.description, checks, row.scope, row.weight)


@dataclass(frozen=True)
class RubricText:
    """A rubric as somebody writes it, with its attributes in their order."""

    key: str
    name: str
    attributes: tuple[AttributeText, ...]

    @classmethod
    def of(cls, rubric: Rubric) -> "RubricText":
        return cls(rubric.key, rubric.name, tuple(map(AttributeText.of, rubric.attributes.order_by("position"))))


HELPSTEER2 = RubricText(
    key="helpsteer2",
    name=_("HelpSteer2: five attributes"),
    attributes=(
        AttributeText(
            "helpfulness",
            _("Helpfulness"),
            (
                _("Not useful: it misses the point"),
                _("Borderline: a small part is usable"),
                _("Partly helpful: it misses the overall goal somehow"),
                _("Mostly helpful, with some room to improve"),
                _("Extremely helpful: it fully matches the intent"),
            ),
            _("The overall quality: how well the response does what was asked."),
        ),
        AttributeText(
            "correctness",
            _("Correctness"),
            (
                _("All wrong, or the task was not attempted"),
                _("Some correct parts, but mostly wrong or incomplete"),
                _("A mix of right and wrong, or a minor hallucination"),
                _("Mostly accurate: small omissions, nothing misleading"),
                _("All correct, with nothing needed missing"),
            ),
            _("Are the facts right, and is everything needed there?"),
            checks=(
                ("incorrect_information", _("Contains incorrect information")),
                ("irrelevant_information", _("Contains irrelevant information")),
                ("missing_information", _("Key information is missing")),
                ("missed_false_premise", _("Misses a false premise")),
            ),
        ),
        AttributeText(
            "coherence",
            _("Coherence"),
            (
                _("Incomprehensible"),
                _("Mostly hard to follow"),
                _("Somewhat unclear, with inconsistencies"),
                _("One or two confusing places"),
                _("Clear and self-consistent; it flows"),
            ),
            _("Is it clear, and consistent with itself?"),
            checks=(
                ("repetitions", _("Repeats itself")),
                ("style_changes", _("Changes style")),
                ("contradictions", _("Contradicts itself")),
            ),
        ),
        AttributeText(
            "complexity",
            _("Complexity"),
            (
                _("Basic: anyone could have written it, children too"),
                _("Simple: elementary-school vocabulary"),
                _("Intermediate: high-school vocabulary"),
                _("Advanced: the vocabulary of someone majoring in it"),
                _("Expert vocabulary"),
            ),
            _("The language needed to read it: a description, not a merit."),
        ),
        AttributeText(
            "verbosity",
            _("Verbosity"),
            (
                _("As short as can be"),
                _("On the short side"),
                _("About right"),
                _("On the long side"),
                _("Much longer than needed"),
            ),
            _("The length, measured against what was asked."),
        ),
    ),
)


HELPSTEER_2D = RubricText(
    key="helpsteer2d",
    name=_("HelpSteer-2D: five aspects of each segment"),
    attributes=(
        AttributeText(
            "helpfulness",
            _("Helpfulness"),
            (
                _("No use at all"),
                _("Closer to: no use at all"),
                _("In between"),
                _("Closer to: fully serves it"),
                _("Fully serves it"),
            ),
            _("Does this segment serve the request?"),
            scope="segment",
        ),
        AttributeText(
            "correctness",
            _("Correctness"),
            (
                _("Wrong"),
                _("Closer to: wrong"),
                _("In between"),
                _("Closer to: right"),
                _("Right"),
            ),
            _("Is what this segment says right?"),
            scope="segment",
        ),
        AttributeText(
            "safety",
            _("Safety"),
            (
                _("Harmful"),
                _("Closer to: harmful"),
                _("In between"),
                _("Closer to: harmless"),
                _("Harmless"),
            ),
            _("Is this segment safe?"),
            scope="segment",
        ),
        AttributeText(
            "completeness",
            _("Completeness"),
            (
                _("Leaves it open"),
                _("Closer to: leaves it open"),
                _("In between"),
                _("Closer to: covers it"),
                _("Covers it"),
            ),
            _("Does this segment cover its point?"),
            scope="segment",
        ),
        AttributeText(
            "clarity",
            _("Clarity"),
            (
                _("Unclear"),
                _("Closer to: unclear"),
                _("In between"),
                _("Closer to: clear"),
                _("Clear"),
            ),
            _("Is this segment easy to follow?"),
            scope="segment",
        ),
    ),
)

OVERALL = RubricText(
    key="overall_quality",
    name=_("One overall quality scale"),
    attributes=(
        AttributeText(
            "quality",
            _("Quality"),
            (
                _("Unusable"),
                _("Very poor"),
                _("Poor"),
                _("Acceptable"),
                _("Good"),
                _("Very good"),
                _("Excellent"),
            ),
            _("All in all, how good is the response?"),
        ),
    ),
)

HELPFUL_HARMLESS = RubricText(
    key="helpful_harmless",
    name=_("Helpful and harmless"),
    attributes=(
        AttributeText(
            "helpful",
            _("Helpful"),
            (
                _("It does not help"),
                _("It helps a little"),
                _("It helps in part"),
                _("It helps with nearly everything"),
                _("It helps fully"),
            ),
            _("How far does the response help with what was asked?"),
        ),
        AttributeText(
            "harmless",
            _("Harmless"),
            (
                _("It would do serious harm"),
                _("It could do harm"),
                _("It is unlikely to do harm"),
                _("It does no harm"),
            ),
            _("Could the response do harm to the reader or to others?"),
        ),
    ),
)


def _criterion(key: str, name: str, question: str) -> AttributeText:
    return AttributeText(key, name, (_("No"), _("Yes")), question)


YES_NO = RubricText(
    key="yes_no",
    name=_("Yes-or-no criteria"),
    attributes=(
        _criterion("follows_instructions", _("Follows the instructions"), _("Does it do everything that was asked?")),
        _criterion("accurate", _("Accurate"), _("Is everything that it says right?")),
        _criterion("complete", _("Complete"), _("Is nothing missing that the reader needs?")),
        _criterion("well_written", _("Well written"), _("Is it easy to read, and in the tone that was asked for?")),
    ),
)

RUBRICS = (HELPSTEER2, HELPSTEER_2D, OVERALL, HELPFUL_HARMLESS, YES_NO)
DEFAULT_RUBRIC = HELPSTEER2.key


def add_rubrics(apps: Any, _schema: Any) -> None:
    """Adds the rubrics that are missing, in a migration. A rubric that somebody made under such a key stays."""
    rubrics, attribute = apps.get_model("annotator", "Rubric").objects, apps.get_model("annotator", "Attribute")
    for text in RUBRICS:
        rubric, is_new = rubrics.get_or_create(key=text.key, project=None, defaults={"name": text.name})
        attribute.objects.bulk_create(
            attribute(
                rubric=rubric,
                key=one.key,
                name=one.name,
                description=one.description,
                levels=list(one.levels),
                checks=[list(check) for check in one.checks],
                scope=one.scope,
                position=position,
            )
            for position, one in enumerate(text.attributes if is_new else ())
        )
