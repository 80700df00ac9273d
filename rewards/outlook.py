"""The learning curve of a run, drawn and said in a sentence: what the next labels would bring."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _


@dataclass(frozen=True)
class Told:
    """`chart` is Chart.js data. `sentence` says what to expect, `order` how many pairs are put in the right order."""

    sentence: str
    order: str
    chart: str


def told(metrics: Mapping[str, Any]) -> Told | None:
    """Of a run's metrics; None where no curve could be drawn."""
    curve = metrics.get("learning_curve")
    return Told(_sentence(curve["outlook"]), _order(curve["points"]), json.dumps(_chart(curve))) if curve else None


def _sentence(found: Mapping[str, Any]) -> str:
    numbers = {
        "more": f"{found['more']:,}",
        "labels": f"{found['labels']:,}",
        **{name: f"{found[name]:.3f}" for name in ("rmse_now", "rmse_then", "low", "high")},
    }
    if not found["evidence"]:
        text = _(
            "No evidence that the next %(more)s labels would lower the error: the fall of the RMSE from "
            "%(rmse_now)s would lie between %(low)s and %(high)s (95 %% interval)."
        )
        return text % numbers
    text = _(
        "The next %(more)s labels would lower the RMSE from about %(rmse_now)s to %(rmse_then)s, by %(low)s to "
        "%(high)s (95 %% interval)."
    )
    guess = _(" That reaches far beyond the %(labels)s labels that there are: take it as a guess.")
    return (text + guess if found["far"] else text) % numbers


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
    """RMSE by labels with its interval, and the power law on to the next labels."""
    points, law, ahead = curve["points"], curve["law"], curve["outlook"]
    sizes = [*(point["labels"] for point in points), ahead["labels"], ahead["labels"] + ahead["more"]]
    fitted = [law["floor"] + law["slope"] * size ** -law["exponent"] for size in sizes]

    def line(label: str, values: list[float], colour: str, **style: Any) -> dict[str, Any]:
        return {"label": label, "data": values, "borderColor": colour, **style}

    dashed = {"borderDash": [4, 4], "pointRadius": 0}
    edges = [line(_("95 % interval"), [p[edge] for p in points], "#a5b4fc", **dashed) for edge in ("low", "high")]
    measured = line(_("measured"), [p["rmse"] for p in points], "#6366f1", displayYAxis=True)
    expected = line(_("expected"), fitted, "#d97706", **dashed)
    return {"labels": [f"{size:,}" for size in sizes], "datasets": [measured, *edges, expected]}
