"""Presents the learning curve of a run as a chart and a sentence: what the next labels would bring."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from rewards import run_report


@dataclass(frozen=True)
class Summary:
    """A learning curve for a page. `chart` is Chart.js data, `axes` its options.

    `sentence` says what to expect, `order` how many pairs are put in the right order.
    """

    sentence: str
    order: str
    chart: str
    axes: str


LAW_STEPS = 40


def summary(metrics: Mapping[str, Any]) -> Summary | None:
    """Returns the learning curve in a run's metrics; None if it has none."""
    curve = metrics.get("learning_curve")
    if not curve:
        return None
    axes = run_report.axes(_("labelled responses"), "RMSE")
    return Summary(_sentence(curve["outlook"]), _order(curve["points"]), json.dumps(_chart(curve)), axes)


def _sentence(curve: Mapping[str, Any]) -> str:
    numbers = {
        "more": f"{curve['more']:,}",
        "labels": f"{curve['labels']:,}",
        **{name: f"{curve[name]:.3f}" for name in ("rmse_now", "rmse_then", "low", "high")},
    }
    if not curve["evidence"]:
        text = _(
            "There is no evidence that the next %(more)s labels would lower the error: the fall of the RMSE from "
            "%(rmse_now)s would lie between %(low)s and %(high)s (95 %% interval)."
        )
        return text % numbers
    text = _(
        "The next %(more)s labels would lower the RMSE from about %(rmse_now)s to %(rmse_then)s, by %(low)s to "
        "%(high)s (95 %% interval)."
    )
    guess = _(" This reaches far beyond the existing %(labels)s labels, so treat it as a guess.")
    return (text + guess if curve["far"] else text) % numbers


def _order(points: list[Mapping[str, Any]]) -> str:
    first, last = points[0], points[-1]
    if last["accuracy"] is None or first["accuracy"] is None:
        return ""
    text = _("Pairs in the right order: %(few)s with %(fewer)s labels, %(many)s with %(more)s.")
    return text % {
        "few": f"{first['accuracy']:.0%}",
        "fewer": f"{first['labels']:,}",
        "many": f"{last['accuracy']:.0%}",
        "more": f"{last['labels']:,}",
    }


def _chart(curve: Mapping[str, Any]) -> dict[str, Any]:
    """Returns Chart.js data: RMSE by labels with its interval as an area, and the power law up to the next labels."""
    points, law, ahead = curve["points"], curve["law"], curve["outlook"]
    first, last = points[0]["labels"], ahead["labels"] + ahead["more"]
    # Even steps of a logarithm draw the bend at few labels as smoothly as the flat end.
    sizes = [first * (last / first) ** (step / LAW_STEPS) for step in range(LAW_STEPS + 1)]
    fitted = [(size, law["floor"] + law["slope"] * size ** -law["exponent"]) for size in sizes]
    measured = [(point["labels"], point["rmse"]) for point in points]
    area = [(p["labels"], p["low"]) for p in points] + [(p["labels"], p["high"]) for p in reversed(points)]

    def line(label: str, points: list[tuple[float, float]], colour: str, **style: Any) -> dict[str, Any]:
        data = [{"x": round(x), "y": y} for x, y in points]
        return {"label": label, "data": data, "borderColor": colour, "backgroundColor": colour, **style}

    return {
        "datasets": [
            line(_("measured"), measured, "#6366f1", pointRadius=3),
            line(_("interval (95 %)"), area, "#6366f140", fill="shape", borderWidth=0),
            line(_("fitted law, and what it expects"), fitted, "#d97706", borderDash=[4, 4]),
        ]
    }
