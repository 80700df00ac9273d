"""Puts together what was measured about annotators for the doors: flags in words, tasks to look at, exclusions."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from django.db.models import FloatField, Func, IntegerField, QuerySet
from django.db.models.fields.json import KT
from django.db.models.functions import Cast
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotator.analysis.quality.flags import FEWEST, FlagKind
from annotator.analysis.quality.patterns import WORDS_A_MINUTE
from annotator.infrastructure.web.numbers import number, signed
from annotator.models import Exclusion, Project, RaterQuality, Task, User

FLAG_COUNT = Func("flags", function="jsonb_array_length", output_field=IntegerField())


@dataclass(frozen=True)
class DescribedFlag:
    """A flag with its sentence in the reader's language, and tasks that show it."""

    kind: FlagKind
    title: str
    sentence: str
    evidence: Mapping[str, Any]
    tasks: Sequence[Task]


@dataclass(frozen=True)
class Finding:
    """What was measured about one annotator.

    `scatter` and `reliability` are means over the attributes, None if nobody else has rated the same responses;
    `no_reliability` says why there is no reliability although others have. `is_too_few` says that nothing stands out
    only because too few of the ratings are shared with others: somebody who guesses would look the same.
    """

    annotator: User
    annotations: int
    measures: Mapping[str, Any]
    flags: Sequence[DescribedFlag]
    exclusion: Exclusion | None
    scatter: float | None
    reliability: float | None
    no_reliability: str
    is_too_few: bool
    leanings: Sequence[float | None]


def most_flagged_first(project: Project) -> QuerySet[RaterQuality]:
    return project.rater_qualities.select_related("annotator").order_by(FLAG_COUNT.desc(), "-annotations", "pk")


def how_many_flagged(project: Project) -> int:
    return project.rater_qualities.exclude(flags=[]).count()


def unjudged(project: Project) -> QuerySet[RaterQuality]:
    """Returns those of whom too few ratings are shared to tell them from guessing, lowest kappa first."""
    rows = project.rater_qualities.filter(flags=[], measures__too_few=True).select_related("annotator")
    return rows.order_by(Cast(KT("measures__kappa"), FloatField()).asc(nulls_last=True), "pk")


def findings(project: Project, rows: Iterable[RaterQuality]) -> list[Finding]:
    """Returns the findings about a project's annotators; the number of queries does not grow with their number."""
    rows = list(rows)
    names = {attribute.key: attribute.shown_name for attribute in project.attributes_for()}
    wanted = {task for row in rows for flag in row.flags for task in flag["examples"]}
    tasks = Task.objects.only("pk", "external_id").in_bulk(wanted)
    excluded = {exclusion.annotator_id: exclusion for exclusion in Exclusion.objects.filter(project=project)}
    return [
        Finding(
            annotator=row.annotator,
            annotations=row.annotations,
            measures=row.measures,
            flags=[_described(flag, names, tasks) for flag in row.flags],
            exclusion=excluded.get(row.annotator_id),
            scatter=_mean(row.measures["scatter"], "levels"),
            reliability=None if _no_reliability(row.measures) else _mean(row.measures["scatter"], "reliability"),
            no_reliability=_no_reliability(row.measures),
            is_too_few=not row.flags and row.measures.get("too_few", False),  # unknown to earlier versions
            leanings=[(row.measures["leaning"].get(key) or {}).get("levels") for key in names],
        )
        for row in rows
    ]


def _described(flag: Mapping[str, Any], names: Mapping[str, str], tasks: Mapping[int, Task]) -> DescribedFlag:
    kind = FlagKind(flag["kind"])
    examples = [tasks[pk] for pk in flag["examples"] if pk in tasks]  # some may be deleted since
    return DescribedFlag(kind, str(kind.label), sentence(kind, flag["evidence"], names), flag["evidence"], examples)


def _no_reliability(measures: Mapping[str, Any]) -> str:
    if not any(measures["scatter"].values()):
        return ""
    if measures["ratings"] < FEWEST:
        return _("fewer than %(fewest)s responses that others also rated") % {"fewest": FEWEST}
    same = _mean(measures["scatter"], "reliability") is None
    return _("almost the same score for everything") if same else ""


def _mean(by_attribute: Mapping[str, Any], name: str) -> float | None:
    known = [values[name] for values in by_attribute.values() if values and values[name] is not None]
    return fmean(known) if known else None


# The texts of flags ------------------------------------------------------------------------------------------

_HIGHER = gettext_lazy(
    "Compared with the others, the second half of %(tasks)s tasks is rated %(levels)s levels higher than the first."
)
_LOWER = gettext_lazy(
    "Compared with the others, the second half of %(tasks)s tasks is rated %(levels)s levels lower than the first."
)
_SENTENCES: Mapping[FlagKind, Any] = {
    FlagKind.SPEEDING: gettext_lazy(
        "%(hurried)s of %(timed)s tasks with a known duration took less than a quarter of the time that reading their "
        "texts takes at %(speed)s words a minute. Half of all tasks took less than %(seconds)s seconds."
    ),
    FlagKind.STRAIGHT_LINING: gettext_lazy(
        "%(flat)s of %(tasks)s tasks have the same score everywhere. This is true of %(others)s %% of the others' "
        "ratings of these tasks."
    ),
    FlagKind.REPEATING: gettext_lazy(
        "%(longest)s tasks in a row have exactly the same scores. Any two of the others' ratings have the same scores "
        "in %(alike)s %% of cases."
    ),
    FlagKind.POSITION: gettext_lazy(
        "%(first)s of %(preferences)s preferences are for the response shown first. The order is random, so about "
        "half is expected."
    ),
    FlagKind.DISAGREEING: gettext_lazy(
        "Kappa with the others is %(kappa)s, averaged over the attributes on %(shared)s responses. Half of the others "
        "reach %(usual)s."
    ),
    FlagKind.LEANING: gettext_lazy(
        "Difference in levels from what the others would give the same %(ratings)s responses: %(parts)s."
    ),
    FlagKind.SCATTERING: gettext_lazy(
        "Ratings scatter by %(levels)s levels around the values that all ratings together predict. A scatter of "
        "%(usual)s is usual here. This is measured on %(ratings)s responses that others also rated."
    ),
}


def sentence(kind: FlagKind, evidence: Mapping[str, Any], names: Mapping[str, str]) -> str:
    """Returns the sentence of a flag with its numbers; `names` holds the attributes' names by key."""
    shown: dict[str, Any] = {"speed": WORDS_A_MINUTE}
    for name, value in evidence.items():
        if isinstance(value, int):
            shown[name] = number(value, 0)
        elif name in ("others", "alike"):
            shown[name] = number(100 * value, 0)
        elif name == "seconds":
            shown[name] = number(value, 0 if value >= 10 else 1)
        elif isinstance(value, Mapping):
            shown["parts"] = ", ".join(f"{names[key]} {signed(value[key])}" for key in names if key in value)
        else:
            shown[name] = number(abs(value) if name == "levels" else value)
    text = _SENTENCES[kind] if kind != FlagKind.DRIFTING else _HIGHER if evidence["levels"] > 0 else _LOWER
    return str(text % shown)
