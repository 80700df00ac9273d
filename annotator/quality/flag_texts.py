"""Puts flags into words, in the reader's language."""

from collections.abc import Callable, Mapping
from typing import Any

from django.utils.translation import gettext as _

from annotator.quality.flags import Kind
from annotator.quality.patterns import WORDS_A_MINUTE
from annotator.web.numbers import number, signed

Evidence = Mapping[str, Any]
Names = Mapping[str, str]


def sentence(kind: Kind, evidence: Evidence, names: Names) -> str:
    """Returns the sentence of a flag with its numbers; `names` holds the attributes' names by key."""
    counts = {name: number(value, 0) for name, value in evidence.items() if isinstance(value, int)}
    return _SENTENCES[kind]({**evidence, **counts}, names)


def _speeding(evidence: Evidence, names: Names) -> str:
    digits = 0 if evidence["seconds"] >= 10 else 1
    return _(
        "%(hurried)s of %(timed)s tasks with a known duration took less than a quarter of the time that reading their "
        "texts takes at %(speed)s words a minute. Half of all tasks took less than %(seconds)s seconds."
    ) % {**evidence, "speed": WORDS_A_MINUTE, "seconds": number(evidence["seconds"], digits)}


def _straight_lining(evidence: Evidence, names: Names) -> str:
    return _(
        "%(flat)s of %(tasks)s tasks have the same score everywhere. This is true of %(others)s %% of the others' "
        "ratings of these tasks."
    ) % {**evidence, "others": number(100 * evidence["others"], 0)}


def _repeating(evidence: Evidence, names: Names) -> str:
    return _(
        "%(longest)s tasks in a row have exactly the same scores. Any two of the others' ratings have the same scores "
        "in %(alike)s %% of cases."
    ) % {**evidence, "alike": number(100 * evidence["alike"], 0)}


def _position(evidence: Evidence, names: Names) -> str:
    return _(
        "%(first)s of %(preferences)s preferences are for the response shown first. The order is random, so about "
        "half is expected."
    ) % dict(evidence)


def _disagreeing(evidence: Evidence, names: Names) -> str:
    return _(
        "Kappa with the others is %(kappa)s, averaged over the attributes on %(shared)s responses. Half of the others "
        "reach %(usual)s."
    ) % {**evidence, "kappa": number(evidence["kappa"]), "usual": number(evidence["usual"])}


def _leaning(evidence: Evidence, names: Names) -> str:
    levels = evidence["levels"]
    parts = [f"{name} {signed(levels[key])}" for key, name in names.items() if key in levels]
    return _("Difference in levels from what the others would give the same %(ratings)s responses: %(parts)s.") % {
        "ratings": evidence["ratings"],
        "parts": ", ".join(parts),
    }


def _scattering(evidence: Evidence, names: Names) -> str:
    return _(
        "Ratings scatter by %(levels)s levels around the values that all ratings together predict. A scatter of "
        "%(usual)s is usual here. This is measured on %(ratings)s responses that others also rated."
    ) % {**evidence, "levels": number(evidence["levels"]), "usual": number(evidence["usual"])}


def _drifting(evidence: Evidence, names: Names) -> str:
    text = (
        _(
            "Compared with the others, the second half of %(tasks)s tasks is rated %(levels)s levels higher than the "
            "first."
        )
        if evidence["levels"] > 0
        else _(
            "Compared with the others, the second half of %(tasks)s tasks is rated %(levels)s levels lower than the "
            "first."
        )
    )
    return text % {"tasks": evidence["tasks"], "levels": number(abs(evidence["levels"]))}


_SENTENCES: Mapping[Kind, Callable[[Evidence, Names], str]] = {
    Kind.SPEEDING: _speeding,
    Kind.STRAIGHT_LINING: _straight_lining,
    Kind.REPEATING: _repeating,
    Kind.POSITION: _position,
    Kind.DISAGREEING: _disagreeing,
    Kind.LEANING: _leaning,
    Kind.SCATTERING: _scattering,
    Kind.DRIFTING: _drifting,
}
