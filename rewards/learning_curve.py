"""Presents the learning curve of a run as a chart and a sentence: what the next labels would bring."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from annotator.web.charts import Chart, Kind, Series
from annotator.web.numbers import number, percent


@dataclass(frozen=True)
class Summary:
    """A learning curve in words: what to expect, and how many pairs are put in the right order."""

    sentence: str
    order: str


def summary(metrics: Mapping[str, Any], *, name: str = "learning_curve") -> Summary | None:
    """Returns the ridge's learning curve in a run's metrics, or the one of this name; None if there is none."""
    curve = metrics.get(name)
    if not curve:
        return None
    words = _words(curve)
    return Summary(_sentence(curve, words), _order(curve["points"], words))


def figure(metrics: Mapping[str, Any], *, name: str = "learning_curve") -> Chart | None:
    """Returns the curve of `summary` as a figure of the workspace: what was measured, and the law up to the outlook."""
    curve = metrics.get(name)
    if not curve:
        return None
    words, points, law, ahead = _words(curve), curve["points"], curve["law"], curve["outlook"]
    sizes = [int(point["labels"]) for point in points]
    sizes += [ahead["labels"] + ahead["more"]] if ahead["labels"] + ahead["more"] > sizes[-1] else []
    gap: list[None] = [None] * (len(sizes) - len(points))
    fitted = [max(0.0, law["floor"] + law["slope"] * size ** -law["exponent"]) for size in sizes]
    return Chart(
        name=name.replace("_", "-"),
        title=_("Error by the number of %(labels)s") % words,
        kind=Kind.LINE,
        places=[number(size, 0) for size in sizes],
        series=[
            Series(
                _("measured"),
                [*(_either(point, "error", "rmse") for point in points), *gap],
                [*(point["low"] for point in points), *gap],
                [*(point["high"] for point in points), *gap],
            ),
            Series(_("fitted law, and what it expects"), fitted),
        ],
        place_label=words["labels_axis"],
        value_label=words["error_axis"],
        digits=3,
    )


def _words(curve: Mapping[str, Any]) -> dict[str, str]:
    """Returns what the curve's labels and its error are called: ratings and RMSE, or preferences and wrong pairs."""
    if curve.get("measure") == "wrong":
        return {
            "labels_axis": _("preferences"),
            "error_axis": _("share of pairs in the wrong order"),
            "labels": _("preferences"),
            "error": _("the share of pairs in the wrong order"),
        }
    return {"labels_axis": _("labelled responses"), "error_axis": "RMSE", "labels": _("labels"), "error": _("the RMSE")}


def _sentence(curve: Mapping[str, Any], words: Mapping[str, str]) -> str:
    outlook = curve["outlook"]
    numbers = {
        "more": number(outlook["more"], 0),
        "count": number(outlook["labels"], 0),
        "now": number(_either(outlook, "now", "rmse_now"), 3),
        "then": number(_either(outlook, "then", "rmse_then"), 3),
        **{name: number(outlook[name], 3) for name in ("low", "high")},
        **words,
    }
    if not outlook["evidence"]:
        text = _(
            "It is uncertain whether the next %(more)s %(labels)s would lower %(error)s from %(now)s: the fall would "
            "lie between %(low)s and %(high)s (95 %% interval)."
        )
    else:
        text = _(
            "The next %(more)s %(labels)s would lower %(error)s from about %(now)s to %(then)s, by %(low)s to %(high)s "
            "(95 %% interval)."
        )
    if outlook.get("probability") is not None:
        text += " " + _("The probability that they lower it at all is %(probability)s.")
        numbers["probability"] = percent(outlook["probability"])
    if outlook["evidence"] and outlook["far"]:
        text += " " + _("This reaches far beyond the existing %(count)s %(labels)s, so treat it as a guess.")
    return text % numbers


def _either(values: Mapping[str, Any], name: str, former: str) -> float:
    """Returns a number that earlier versions stored under another name."""
    value: float = values[name] if name in values else values[former]
    return value


def _order(points: list[Mapping[str, Any]], words: Mapping[str, str]) -> str:
    first, last = points[0], points[-1]
    if last["accuracy"] is None or first["accuracy"] is None:
        return ""
    text = _("Pairs in the right order: %(few)s with %(fewer)s %(labels)s, %(many)s with %(more)s.")
    return text % {
        "few": percent(first["accuracy"]),
        "fewer": number(first["labels"], 0),
        "many": percent(last["accuracy"]),
        "more": number(last["labels"], 0),
        "labels": words["labels"],
    }
