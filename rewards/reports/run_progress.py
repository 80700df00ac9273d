"""Says how far a run is that has not ended: what it does, which share of its steps is done, and how long they take."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from annotator.infrastructure.web.charts import Chart, ChartKind, Series
from annotator.infrastructure.web.numbers import number, percent
from rewards.models import RunKind, RunState, TrainingRun

FEWEST_STEPS = 3
"""Steps before which nothing is said about the time that is left: the first ones are slow."""
POINTS_DRAWN = 120
MEASURED = "measured_loss"


@dataclass(frozen=True)
class RunProgress:
    """What a run does now. `done` of `total` steps are taken where it takes any; `left` is the time for the others.

    What is counted may be other than steps: `counted` then says it.
    """

    sentence: str
    done: int = 0
    total: int = 0
    left: timedelta | None = None
    counted: str = ""

    @property
    def share(self) -> int:
        """The share of the steps in per cent."""
        return 100 * self.done // self.total if self.total else 0


def progress_of(run: TrainingRun, *, now: datetime) -> RunProgress:
    """Returns what the run does, from its state and the newest event of its trainer."""
    event = run.progress or {}
    if run.state == RunState.QUEUED:
        again = _("It waits for a worker of the queue “train”, and goes on from its last checkpoint.")
        return RunProgress(again if run.attempt else _("It waits for a worker of the queue “train”."))
    if run.state == RunState.SNAPSHOTTING:
        tasks = int(event.get("tasks") or 0)
        text = ngettext(
            "It writes the labels to files: %(tasks)s task so far.",
            "It writes the labels to files: %(tasks)s tasks so far.",
            tasks,
        )
        return RunProgress(text % {"tasks": number(tasks, 0)})
    if run.state == RunState.AWAITING_PROMOTION:
        return RunProgress(_("Its model is trained and judged. It waits for your decision."))
    if run.state == RunState.EVALUATING and run.kind == RunKind.POLICY:
        text = _(
            "The policy is aligned. It and its base answer held-out prompts, and the champion compares the answers."
        )
        return _counted(run, event, text) or RunProgress(text)
    if run.state == RunState.EVALUATING:
        text = _("The model is trained. It is now judged on the held-out prompts.")
        return _counted(run, event, text) or RunProgress(text)
    return _counted(run, event) or _of_trainer(run, event, now)


def _of_trainer(run: TrainingRun, event: Mapping[str, Any], now: datetime) -> RunProgress:
    name = event.get("event")
    done, total = _whole(event.get("step")), _whole(event.get("steps"))
    if not total:
        # An epoch's own event does not repeat the number of steps.
        total = next((_whole(one.get("steps")) for one in reversed(run.losses) if one.get("steps")), 0)
    if name in ("step", "epoch", "out_of_memory", "resumed") and total:
        left = _time_left(run.losses, done, total)
        return RunProgress(_("It fine-tunes the network."), min(done, total), total, left)
    words = {
        "start": _("It loads the language model and reads the prompts."),
        "baseline": _("The ridge is fitted. Fine-tuning comes next, if it is wanted."),
        "reference_computed": _("The reference is known. Fine-tuning comes next."),
        "reference_read": _("The reference is known. Fine-tuning comes next."),
        "folds": _("It trains again on parts of the prompts, to be judged by the others."),
        "fold": _("It trains again on parts of the prompts, to be judged by the others."),
        "evaluation": _("The model is trained. It is now measured on the held-out prompts."),
        "done": _("The model is trained. It is now measured on the held-out prompts."),
    }
    return RunProgress(words.get(str(name), _("The trainer starts.")))


def _counted(run: TrainingRun, event: Mapping[str, Any], sentence: str = "") -> RunProgress | None:
    """Returns how much of its present work is done, where the newest event is one that comes for each per cent."""
    sentences = {
        "encode": _("It turns the texts into tokens."),
        "features": _("The language model reads the responses once, for the ridge."),
        "predict": _("The model predicts the scores of held-out responses."),
        "reference": _("The reference reads the examples once: the policy will be compared with it."),
        "measure": _("The policy is measured on the examples."),
        "answer": _("The policy answers held-out prompts."),
    }
    name, done, total = event.get("event"), _whole(event.get("done")), _whole(event.get("total"))
    if name not in sentences or not total:
        return None
    if name == "answer":
        text = _("%(done)s of %(total)s prompts (%(share)s).")
    elif run.kind == RunKind.POLICY and run.state == RunState.TRAINING:
        text = _("%(done)s of %(total)s examples (%(share)s).")
    else:
        text = _("%(done)s of %(total)s responses (%(share)s).")
    return RunProgress(sentence or sentences[name], done, total, counted=_of_total(text, done, total))


def responses_done(event: Mapping[str, Any]) -> str:
    """Returns how many responses are done in an event that comes for each per cent; empty for others."""
    done, total = _whole(event.get("done")), _whole(event.get("total"))
    return _of_total(_("%(done)s of %(total)s responses (%(share)s)."), done, total) if total else ""


def _of_total(text: str, done: int, total: int) -> str:
    return text % {"done": number(done, 0), "total": number(total, 0), "share": percent(done / total, 0)}


def _time_left(losses: Sequence[Mapping[str, Any]], done: int, total: int) -> timedelta | None:
    """Returns how long the steps that are left take at the pace of the newer half; None where nobody knows yet."""
    steps = [event for event in losses if event.get("event") == "step" and event.get("time")]
    if len(steps) < FEWEST_STEPS:
        return None
    first, last = steps[len(steps) // 2 - 1], steps[-1]
    taken = _whole(last["step"]) - _whole(first["step"])
    seconds = float(last["time"]) - float(first["time"])
    if taken <= 0 or seconds < 0:
        return None
    return timedelta(seconds=round(seconds / taken * max(total - done, 0)))


def _whole(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def losses_chart(losses: Sequence[Mapping[str, Any]]) -> Chart | None:
    """Returns the loss by step, each stage with lines of its own; None before there are two points."""
    points = [
        _as_measured(event) for event in losses if "step" in event and ("loss" in event or "validation_loss" in event)
    ]
    steps = sorted({_whole(event["step"]) for event in points})
    if len(steps) < 2:
        return None
    places = _thinned(steps)
    stages = list(dict.fromkeys(str(event.get("stage", "")) for event in points))
    series = []
    for stage in stages:
        in_stage = [event for event in points if str(event.get("stage", "")) == stage]
        prefix = f"{stage}: " if len(stages) > 1 and stage else ""
        for key, title in (
            ("loss", _("training loss")),
            ("validation_loss", _("loss on the dev part")),
            (MEASURED, _("loss on the measured part")),
        ):
            values = _by_place(in_stage, key, places)
            if any(value is not None for value in values):
                series.append(Series(prefix + title, values))
    return Chart(
        name="losses",
        title=_("Loss"),
        kind=ChartKind.LINE,
        places=[number(step, 0) for step in places],
        series=series,
        place_label=_("Step"),
        value_label=_("Loss"),
        note=_(
            "Lower is better. The dev part consists of training prompts that are kept aside to choose the best step."
        )
        if any("validation_loss" in event for event in points)
        else _("Lower is better."),
        digits=4,
    )


def _as_measured(event: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the event; the loss at the end of an alignment's epoch is not of the training rows, and is named so."""
    if event.get("event") != "epoch" or "loss" not in event:
        return event
    return {**{name: value for name, value in event.items() if name != "loss"}, MEASURED: event["loss"]}


def _thinned(steps: Sequence[int]) -> list[int]:
    """Returns at most POINTS_DRAWN of the steps, evenly, with the first and the last."""
    if len(steps) <= POINTS_DRAWN:
        return list(steps)
    last = len(steps) - 1
    return [steps[round(place * last / (POINTS_DRAWN - 1))] for place in range(POINTS_DRAWN)]


def _by_place(events: Sequence[Mapping[str, Any]], key: str, places: Sequence[int]) -> list[float | None]:
    """Returns the mean of the events from each place up to the next one, the newer value where there is only one."""
    values: list[list[float]] = [[] for _place in places]
    at = 0
    for event in sorted((one for one in events if isinstance(one.get(key), int | float)), key=_step):
        while at + 1 < len(places) and places[at + 1] <= _step(event):
            at += 1
        values[at].append(float(event[key]))
    return [sum(part) / len(part) if part else None for part in values]


def _step(event: Mapping[str, Any]) -> int:
    return _whole(event.get("step"))
