"""A report as plain values, for REST and for the command's JSON."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from annotator.agreement.reports import Closeness, Report
from annotator.models import User


def told(report: Report, *, name: Callable[[User], str]) -> dict[str, Any]:
    """The selections stand at the top, by attribute; `name` says how annotators are called."""

    def of_all(measure: Callable[[Closeness], Any]) -> Mapping[str, Any]:
        return {key: measure(each) for key, each in report.closeness.items()}

    return {
        **{
            selection.value: {key: asdict(each) for key, each in found.items()}
            for selection, found in report.selections.items()
        },
        "alpha": of_all(lambda each: {"ordinal": each.alpha_ordinal, "interval": each.alpha_interval}),
        "spearman": of_all(lambda each: each.spearman),
        "exact": of_all(lambda each: each.exact),
        "within_one": of_all(lambda each: each.within_one),
        "confusion": of_all(lambda each: each.confusion),
        "preference": {
            **asdict(report.preference.agreement),
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
                "annotator": name(each.user),
                "shared": each.shared,
                "kappa": each.kappa,
                "exact": each.exact,
                "bias": each.bias,
            }
            for each in report.raters
        ],
        "pairs": [
            {"annotators": [name(each.one), name(each.other)], "shared": each.shared, "kappa": each.kappa}
            for each in report.pairs
        ],
        "weeks": [{"week": each.monday, "samples": each.samples, "kappa": each.kappa} for each in report.weeks],
        "as_of": report.as_of,
        "pending": report.pending,
    }
