"""Turns a report into plain values, for REST and for the command's JSON."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from annotator.agreement.reports import Closeness, Report
from annotator.models import User


def to_json(report: Report, *, name: Callable[[User], str]) -> dict[str, Any]:
    """Returns the report as nested dicts, the selections at the top level; `name` returns an annotator's name."""

    def by_attribute(measure: Callable[[Closeness], Any]) -> Mapping[str, Any]:
        return {key: measure(closeness) for key, closeness in report.closeness.items()}

    return {
        **{
            selection.value: {key: asdict(estimate) for key, estimate in estimates.items()}
            for selection, estimates in report.selections.items()
        },
        "alpha": by_attribute(
            lambda closeness: {"ordinal": closeness.alpha_ordinal, "interval": closeness.alpha_interval}
        ),
        "spearman": by_attribute(lambda closeness: closeness.spearman),
        "exact": by_attribute(lambda closeness: closeness.exact),
        "within_one": by_attribute(lambda closeness: closeness.within_one),
        "confusion": by_attribute(lambda closeness: closeness.confusion),
        "preference": {
            **asdict(report.preference.agreement),
            "nominal_kappa": report.preference.nominal,
            "same_side": report.preference.same_side,
            "neither": report.preference.neither,
        },
        "ranking": {
            **asdict(report.ranking.agreement),
            "same_order": report.ranking.same_order,
            "ties": report.ranking.ties,
        },
        "safety": {
            **asdict(report.safety.agreement),
            "exact": report.safety.exact,
            "unsafe": report.safety.unsafe,
        },
        "annotators": [
            {
                "annotator": name(rater.user),
                "shared": rater.shared,
                "kappa": rater.kappa,
                "exact": rater.exact,
                "bias": rater.bias,
            }
            for rater in report.raters
        ],
        "pairs": [
            {"annotators": [name(pair.one), name(pair.other)], "shared": pair.shared, "kappa": pair.kappa}
            for pair in report.pairs
        ],
        "weeks": [{"week": week.monday, "samples": week.samples, "kappa": week.kappa} for week in report.weeks],
        "as_of": report.as_of,
        "pending": report.pending,
    }
