"""Measures how far the scores of segments are from people's, by aspect, and whether the worst segment is found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rewards.learning.answers import SegmentAnswers, scores_by_aspect, segment_labels
from rewards.learning.data import Floats, Ints, Task, prompts_of, scales_of
from rewards.learning.intervals import by_prompt, of_share
from rewards.learning.metrics import Measures, attribute_measures, over_all, root_mean_square
from rewards.learning.model_files import Manifest

ALL = "all"
"""The worst segment by the mean of all its aspects."""


def measure_segments(tasks: Sequence[Task], predicted: Floats | None, manifest: Manifest) -> Measures:
    """Returns under `segments` all measures of one model's predictions [segments, aspects]; nothing if it has none.

    A segment without a prediction, as it owns no token, is not judged but counted as `dropped`.
    """
    if predicted is None:
        return {}
    scored = np.asarray(np.isfinite(predicted).all(axis=1))
    labels = np.where(scored[:, None], segment_labels(tasks, manifest.aspects), np.nan)
    bounds = np.cumsum([0, *(len(response.segments) for task in tasks for response in task.responses)])
    of_responses = prompts_of(tasks)
    prompts = [of_responses[row] for row in np.repeat(np.arange(len(of_responses)), np.diff(bounds)).tolist()]
    scales = scales_of(manifest.aspects, manifest.levels)
    columns = {name: (labels[:, i], predicted[:, i]) for i, name in enumerate(manifest.aspects)}
    means = dict(zip(manifest.aspects, manifest.aspect_means, strict=True))
    known = np.isfinite(labels)
    counts = np.where(known.any(axis=1), known.sum(axis=1), np.nan)
    # [segments] twice: the means over the aspects for which a segment has a label, NaN where it has none.
    of_labels, of_predictions = (np.where(known, values, 0.0).sum(axis=1) / counts for values in (labels, predicted))
    judged = {**columns, ALL: (of_labels, of_predictions)}
    lengths = np.array([one.end - one.start for task in tasks for answer in task.responses for one in answer.segments])
    cases = {name: cases_of(y, p, bounds, of_responses, lengths=lengths) for name, (y, p) in judged.items()}
    return {
        "segments": {
            "aspects": {
                name: attribute_measures(p, y, mean=means[name], prompts=prompts, levels=scales[name])
                for name, (y, p) in columns.items()
            },
            **over_all(predicted - labels, labels, prompts),
            "worst": {name: worst_segment(found) for name, found in cases.items()},
            "count": len(predicted),
            "dropped": int((~scored).sum()),
        }
    }


def mean_of_segments(answers: SegmentAnswers | None, manifest: Manifest) -> Measures:
    """Returns under `segments` the errors of the trivial predictor, which says the training mean for every segment."""
    if answers is None:
        return {}
    errors = np.array(manifest.aspect_means) - answers.labels
    known = np.isfinite(errors)
    by_aspect = {name: errors[known[:, i], i] for i, name in enumerate(manifest.aspects)}
    return {
        "segments": {
            "values": manifest.aspect_means,
            "aspects": {name: {"n": len(values), "rmse": _size(values)} for name, values in by_aspect.items()},
            "rmse": _size(errors[known]),
        }
    }


def _size(errors: Floats) -> float | None:
    return root_mean_square(errors)(np.ones(len(errors)))


def segment_fields(tasks: Sequence[Task], predicted: Floats | None, manifest: Manifest) -> Iterator[dict[str, Any]]:
    """Yields what a response's row of predictions has besides: nothing where it has no segments.

    `segments` are the scores by aspect, {} for a segment without any; `segment_squared_error` is summed over the
    `segment_labels` known labels.
    """
    start = 0
    for response in (response for task in tasks for response in task.responses):
        end = start + len(response.segments)
        if predicted is None or end == start:
            yield {}
            continue
        labels = [[segment.scores.get(name, np.nan) for name in manifest.aspects] for segment in response.segments]
        errors = (predicted[start:end] - np.array(labels)) ** 2
        yield {
            "segments": scores_by_aspect(predicted[start:end], manifest.aspects),
            "segment_squared_error": float(np.nansum(errors)),
            "segment_labels": int(np.isfinite(errors).sum()),
        }
        start = end


# The worst segment -------------------------------------------------------------------------------------------


POSITIONS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""The rules of position: always the segment at this share of the way from the first to the last."""
SAME = 1e-9
"""Means that are equal on paper differ by a rounding error."""


@dataclass(frozen=True)
class SegmentCase:
    """A response: labels, predicted and lengths [segments] of its segments that have the first two, in their order."""

    prompt: str
    labels: Floats
    predicted: Floats
    lengths: Floats


def cases_of(
    labels: Floats, predicted: Floats, bounds: Ints, prompts: Sequence[str], *, lengths: Floats
) -> list[SegmentCase]:
    """Returns the responses with at least two segments whose labels differ.

    labels [segments] and predicted [segments] of all responses, NaN where one is missing, and their lengths [segments]
    in characters; those of response n are from bounds[n] to bounds[n + 1]; prompts [responses].
    """
    cases = []
    for prompt, start, end in zip(prompts, bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        known = np.isfinite(labels[start:end]) & np.isfinite(predicted[start:end])
        case = SegmentCase(prompt, *(values[start:end][known] for values in (labels, predicted, lengths)))
        if len(case.labels) > 1 and np.ptp(case.labels) > SAME:
            cases.append(case)
    return cases


def worst_segment(cases: Sequence[SegmentCase]) -> Measures:
    """Returns how often the segment of the lowest prediction is among those of the lowest label.

    Of several lowest predictions each counts its share, so a model that says the same of all segments is at chance.
    `chance` is what a random segment would reach, `position` the best of the rules in POSITIONS, which is chosen in
    hindsight on these same responses and so is flattered, `last` the rule that it is always the last, and `longest` the
    rule that it is the longest: a long segment has more room for a mistake. Intervals are over prompts, with all tasks
    of one.
    """
    if not cases:
        unknown = dict.fromkeys(("accuracy", "chance", "position", "last", "longest"))
        return {"responses": 0, **unknown, "intervals": {}}
    prompts = [case.prompt for case in cases]
    found = np.array([_share_found(case.predicted, case.labels) for case in cases])
    longest = np.array([_share_found(-case.lengths, case.labels) for case in cases])
    chance = np.array([_lowest(case.labels).mean() for case in cases])
    rules = {
        share: np.array([_lowest(c.labels)[int(share * (len(c.labels) - 1) + 0.5)] for c in cases])
        for share in POSITIONS
    }
    best = max(POSITIONS, key=lambda share: float(rules[share].mean()))
    rivals = {"chance": chance, "position": rules[best], "longest": longest}
    above = {f"above_{name}": found - rival for name, rival in rivals.items()}
    intervals = by_prompt(
        prompts, lambda w: {name: float((values * w).sum() / w.sum()) for name, values in above.items()}
    )
    return {
        "responses": len(cases),
        "accuracy": float(found.mean()),
        "chance": float(chance.mean()),
        "position": {"share": best, "accuracy": float(rules[best].mean())},
        "last": float(rules[1.0].mean()),
        "longest": float(longest.mean()),
        **{name: float(values.mean()) for name, values in above.items()},
        "intervals": {**of_share(found, prompts), **intervals},
    }


def _share_found(predicted: Floats, labels: Floats) -> float:
    lowest = _lowest(predicted)
    return float(lowest @ _lowest(labels) / lowest.sum())


def _lowest(values: Floats) -> Floats:
    """[segments]: 1 for the lowest values, 0 for others."""
    return np.asarray(values <= values.min() + SAME, dtype=np.float64)
