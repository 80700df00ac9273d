"""A run told to people: its verdict, its predictors side by side, which one is the candidate, its losses drawn."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rewards.promotion import PAIRS, SQUARES

DIGITS = 3


def verdict(decision: Mapping[str, Any]) -> str:
    """The change in what was measured, with its interval; empty where nothing was."""
    if not decision.get("prompts") or decision["gain"] is None:
        return ""
    measure, gain, low, high = decision.get("measure", SQUARES), decision["gain"], decision["low"], decision["high"]
    if round(gain, DIGITS) == 0:
        change, of = "stays the same", " of the fall"
    elif gain > 0:
        change, of = f"falls by {gain:.{DIGITS}f}", ""
    else:
        change, of, low, high = f"rises by {-gain:.{DIGITS}f}", "", -high, -low
    interval = f"95 % interval{of} {_signed(low)} to {_signed(high)}"
    sentence = (
        f"The {measure} {change} against {decision['against']} ({interval}, {decision['prompts']} held-out prompts)."
    )
    return f"{sentence} {BY_PAIRS}" if measure == PAIRS else sentence


BY_PAIRS = (
    "Judged by the order of pairs, as the scores of a model whose last stage learnt from preferences "
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
    read = f" Layers of the backbone that are read: {layers}." if layers else ""
    if kind == "ridge":
        return f"The ridge on frozen features is the candidate: fine-tuning did not beat it on the dev prompts.{read}"
    return f"The candidate is fine-tuned, and better than the ridge on the dev prompts.{read}"


# Side by side -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Predictor:
    """One of those that a run tries on the held-out prompts."""

    title: str
    metrics: Mapping[str, Any]

    def of(self, attribute: str, name: str) -> float | None:
        value: float | None = self.metrics.get("attributes", {}).get(attribute, {}).get(name)
        return value

    def accuracy(self) -> float | None:
        accuracy: float | None = self.metrics.get("pairwise", {}).get("accuracy")
        return accuracy

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
    predictors = [predictor for predictor in _predictors(metrics) if predictor.is_measured(attributes)]
    by_attribute = [
        (title, [Line(key, [predictor.of(key, name) for predictor in predictors]) for key in attributes])
        for title, name in (("RMSE", "rmse"), ("Spearman", "spearman"))
    ]
    accuracies = Line("in the right order", [predictor.accuracy() for predictor in predictors])
    groups = [(title, _known(lines)) for title, lines in [*by_attribute, (_pairs(metrics), [accuracies])]]
    kept = [(title, lines) for title, lines in groups if lines]
    return SideBySide([predictor.title for predictor in predictors], kept) if kept else None


def _predictors(metrics: Mapping[str, Any]) -> Iterator[Predictor]:
    candidate = metrics.get("candidate", {})
    kind = candidate.get("kind")
    # Older runs do not tell of a fine-tuned model that was not kept.
    fine_tuned = metrics.get("fine_tuned") or (candidate if kind == "finetuned" else {})
    evaluations = {"mean": metrics.get("mean"), "ridge": metrics.get("baseline"), "finetuned": fine_tuned}
    for name, evaluation in evaluations.items():
        if evaluation:
            yield Predictor(PREDICTORS[name] + (CANDIDATE if name == kind else ""), evaluation)


PREDICTORS = {"mean": "the mean", "ridge": "ridge on frozen features", "finetuned": "fine-tuned"}
CANDIDATE = " (candidate)"


def _pairs(metrics: Mapping[str, Any]) -> str:
    pairwise = metrics.get("candidate", {}).get("pairwise", {})
    if not pairwise.get("pairs"):
        return ""
    return f"{pairwise['pairs']:,} pairs (of which the longer response is right in {pairwise['longer_wins']:.3f})"


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
