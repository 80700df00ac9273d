"""Measures how far the scores of segments are from people's, by aspect, and whether the worst segment is found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from rewards.learning.data import Floats, Task, prompts_of, scales_of
from rewards.learning.metrics import Measures, attribute_measures, over_all, root_mean_square
from rewards.learning.model_files import Manifest
from rewards.learning.segment_answers import SegmentAnswers, scores_by_aspect, segment_labels
from rewards.learning.worst_segment import cases_of, worst_segment

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
    judged = {**columns, ALL: _means(labels, predicted)}
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


def _means(labels: Floats, predicted: Floats) -> tuple[Floats, Floats]:
    """Returns [segments] twice: the means over the aspects for which a segment has a label, NaN where it has none."""
    known = np.isfinite(labels)
    counts = np.where(known.any(axis=1), known.sum(axis=1), np.nan)
    sums = (np.where(known, values, 0.0).sum(axis=1) / counts for values in (labels, predicted))
    of_labels, of_predictions = sums
    return of_labels, of_predictions


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
