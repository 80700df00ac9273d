"""A run told to people: its verdict, its predictors side by side, which one is the candidate, its losses drawn."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rewards.promotion import PAIRS, SQUARES

DIGITS = 3


def verdict(found: Mapping[str, Any]) -> str:
    """The change in what was measured, with its interval; empty where nothing was."""
    if not found.get("prompts") or found["gain"] is None:
        return ""
    measure, gain, low, high = found.get("measure", SQUARES), found["gain"], found["low"], found["high"]
    if round(gain, DIGITS) == 0:
        change, of = "stays the same", " of the fall"
    elif gain > 0:
        change, of = f"falls by {gain:.{DIGITS}f}", ""
    else:
        change, of, low, high = f"rises by {-gain:.{DIGITS}f}", "", -high, -low
    interval = f"95 % interval{of} {_signed(low)} to {_signed(high)}"
    told = f"The {measure} {change} against {found['against']} ({interval}, {found['prompts']} held-out prompts)."
    return f"{told} {BY_PAIRS}" if measure == PAIRS else told


BY_PAIRS = (
    "The verdict compares the order of pairs, because the scores of a model whose last stage learnt from preferences "
    "are not on the scale of the labels."
)


def _signed(value: float) -> str:
    return f"{round(value, DIGITS) + 0.0:.{DIGITS}f}".replace("-", "\N{MINUS SIGN}")


def held_out(manifest: Mapping[str, Any]) -> str:
    """How many of a snapshot's prompts are held out, or of its tasks where it is older than the count of prompts."""
    counts = manifest.get("counts", {})
    what = "prompts" if "validation_prompts" in counts else "tasks"
    held, learnt = counts.get(f"validation_{what}"), counts.get(f"train_{what}")
    if not held or not learnt:
        return ""
    return f"Held out: {held:,} of {held + learnt:,} {what} ({held / (held + learnt):.0%})."


def winner(metrics: Mapping[str, Any]) -> str:
    """Which of the run's two models is the candidate; empty before that is known."""
    kind = metrics.get("candidate", {}).get("kind")
    if kind is None:
        return ""
    layers = metrics.get("baseline", {}).get("layers")
    read = f" Layers of the backbone in use: {layers}." if layers else ""
    if kind == "ridge":
        said = "The ridge on frozen features is the candidate, because fine-tuning was not better on the dev prompts."
        return said + read
    return f"The candidate is fine-tuned, and better than the ridge on the dev prompts.{read}"


# Side by side -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Predictor:
    """One of those that a run tries on the held-out prompts."""

    title: str
    metrics: Mapping[str, Any]

    def of(self, attribute: str, name: str) -> float | None:
        found: float | None = self.metrics.get("attributes", {}).get(attribute, {}).get(name)
        return found

    def accuracy(self) -> float | None:
        found: float | None = self.metrics.get("pairwise", {}).get("accuracy")
        return found

    def is_measured(self, attributes: Sequence[str]) -> bool:
        return self.accuracy() is not None or any(self.of(key, "rmse") is not None for key in attributes)


@dataclass(frozen=True)
class Line:
    """A line of a table: what it is about, and a value for each column."""

    title: str
    values: list[float | None]


@dataclass(frozen=True)
class SideBySide:
    """A column for each predictor; the lines by what they measure."""

    columns: list[str]
    groups: list[tuple[str, list[Line]]]


def side_by_side(metrics: Mapping[str, Any], attributes: Sequence[str]) -> SideBySide | None:
    """What each predictor of a run makes of the held-out prompts; None before that is known."""
    predictors = [each for each in _predictors(metrics) if each.is_measured(attributes)]
    by_attribute = [
        (title, [Line(key, [each.of(key, name) for each in predictors]) for key in attributes])
        for title, name in (("RMSE", "rmse"), ("Spearman", "spearman"))
    ]
    accuracies = Line("in the right order", [each.accuracy() for each in predictors])
    groups = [(title, _known(lines)) for title, lines in [*by_attribute, (_pairs(metrics), [accuracies])]]
    told = [(title, lines) for title, lines in groups if lines]
    return SideBySide([each.title for each in predictors], told) if told else None


def _predictors(metrics: Mapping[str, Any]) -> Iterator[Predictor]:
    candidate = metrics.get("candidate", {})
    kind = candidate.get("kind")
    # Older runs do not tell of a fine-tuned model that was not kept.
    fine_tuned = metrics.get("fine_tuned") or (candidate if kind == "finetuned" else {})
    found = {"mean": metrics.get("mean"), "ridge": metrics.get("baseline"), "finetuned": fine_tuned}
    for name, each in found.items():
        if each:
            yield Predictor(PREDICTORS[name] + (CANDIDATE if name == kind else ""), each)


PREDICTORS = {"mean": "the mean", "ridge": "ridge on frozen features", "finetuned": "fine-tuned"}
CANDIDATE = " (candidate)"


def _pairs(metrics: Mapping[str, Any]) -> str:
    found = metrics.get("candidate", {}).get("pairwise", {})
    if not found.get("pairs"):
        return ""
    return f"{found['pairs']:,} pairs (of which the longer response is right in {found['longer_wins']:.3f})"


def _known(lines: Sequence[Line]) -> list[Line]:
    return [line for line in lines if any(value is not None for value in line.values)]


# Charts -----------------------------------------------------------------------------------------------------

BLUES, AMBERS = ("#6366f1", "#0ea5e9", "#8b5cf6"), ("#d97706", "#dc2626", "#65a30d")


def losses(events: Sequence[Mapping[str, Any]]) -> str:
    """Chart.js data: by step the training loss and the loss on the dev part, each stage with lines of its own."""
    stages = list(dict.fromkeys(event.get("stage", "") for event in events))
    lines = []
    for place, stage in enumerate(stages):
        of = [event for event in events if event.get("stage", "") == stage]
        title = f"{stage}: " if stage else ""
        lines.append(_line(f"{title}training loss", of, "loss", BLUES[place % len(BLUES)]))
        dev = _line(f"{title}loss on the dev part", of, "validation_loss", AMBERS[place % len(AMBERS)])
        lines.append({**dev, "pointStyle": "circle", "pointRadius": 3})
    return json.dumps({"datasets": [line for line in lines if line["data"]]})


def _line(label: str, events: Sequence[Mapping[str, Any]], key: str, colour: str) -> dict[str, Any]:
    points = [{"x": event["step"], "y": event[key]} for event in events if key in event and "step" in event]
    return {"label": label, "data": points, "borderColor": colour, "backgroundColor": colour}


def axes(across: str, up: str) -> str:
    """Chart.js options: a linear axis across, values on both, a legend that names the lines."""

    def axis(title: str, **more: Any) -> dict[str, Any]:
        return {"type": "linear", "title": {"display": True, "text": title, "color": GREY}, "ticks": TICKS, **more}

    legend = {"position": "top", "align": "start", "labels": {"boxWidth": 20, "boxHeight": 2, "color": GREY}}
    return json.dumps(
        {
            "animation": False,
            "responsive": True,
            "maintainAspectRatio": False,
            "datasets": {"line": {"borderWidth": 2, "pointRadius": 0}},
            "plugins": {"legend": legend},
            "scales": {"x": axis(across, grid={"display": False}), "y": axis(up, grid={"tickWidth": 0})},
        }
    )


GREY = "#858b97"
TICKS = {"color": GREY, "maxTicksLimit": 8, "maxRotation": 0}
