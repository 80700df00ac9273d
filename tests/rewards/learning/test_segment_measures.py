from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from rewards.learning.answers import segment_labels
from rewards.learning.data import Floats, Task, tasks_of
from rewards.learning.model import DECODER
from rewards.learning.model_files import RIDGE, Manifest
from rewards.learning.segment_measures import measure_segments, segment_fields
from tests.rewards.learning.builders import make_row
from tests.rewards.learning.segment_builders import ASPECTS, make_segmented_response, make_segmented_rows


def manifest(**levels: int) -> Manifest:
    return Manifest(
        RIDGE, (), {}, (), DECODER, "none", "", "", 64, "c0ffee", {}, levels, aspects=ASPECTS, aspect_means=(2.0, 2.0)
    )


def tasks(rows: list[Any], levels: int = 5) -> list[Task]:
    return list(tasks_of("rows", enumerate(rows, start=1), aspects=dict.fromkeys(ASPECTS, levels)))


def measured(given: list[Task], predicted: Floats, **levels: int) -> Any:
    return measure_segments(given, predicted, manifest(**levels))["segments"]


@pytest.mark.parametrize("levels", [3, 4, 5, 6, 7])
def test_the_kappa_of_an_aspect_is_that_of_scikit_learn(levels: int) -> None:
    random = np.random.default_rng(levels)
    labels = random.uniform(0, levels - 1, size=(60, 2))
    labels[random.random((60, 2)) < 0.3] = math.nan
    predicted = random.uniform(-0.7, levels - 0.3, size=(60, 2))
    scores = [[None if math.isnan(value) else value for value in row] for row in labels.tolist()]
    rows = [
        make_row(n, responses=[make_segmented_response("r", ["a", "b"], scores[2 * n : 2 * n + 2])]) for n in range(30)
    ]
    aspects = measured(tasks(rows, levels), predicted, **dict.fromkeys(ASPECTS, levels))["aspects"]
    for column, name in enumerate(ASPECTS):
        known = np.isfinite(labels[:, column])
        rounded = (np.clip(np.rint(values[known, column]), 0, levels - 1) for values in (predicted, labels))
        expected = cohen_kappa_score(*rounded, weights="quadratic", labels=range(levels))
        assert aspects[name]["qwk"] == pytest.approx(expected)
        assert aspects[name]["n"] == known.sum()


def test_the_error_stands_beside_that_of_the_mean() -> None:
    given = tasks([make_row(1, responses=[make_segmented_response("r", ["a", "b"], [[0, 4], [4, None]])])])
    segments = measured(given, np.array([[1.0, 3.0], [3.0, 0.0]]))
    assert segments["aspects"]["correctness"]["rmse"] == pytest.approx(1.0)
    assert segments["aspects"]["correctness"]["mean_rmse"] == pytest.approx(2.0)
    assert (segments["rmse"], segments["n"]) == (pytest.approx(1.0), 3)


def test_perfect_predictions_find_every_worst_segment() -> None:
    given = tasks(make_segmented_rows(20))
    segments = measured(given, segment_labels(given, ASPECTS))
    assert (segments["rmse"], segments["worst"]["all"]["accuracy"]) == (0.0, 1.0)
    assert segments["worst"]["all"]["chance"] < 0.6


def test_a_segment_without_a_token_is_counted_and_not_judged() -> None:
    given = tasks([make_row(1, responses=[make_segmented_response("r", ["a", "b", "c"], [[0, 1], [1, 1], [4, 1]])])])
    segments = measured(given, np.array([[2.0, 1.0], [math.nan, math.nan], [3.0, 1.0]]))
    assert (segments["count"], segments["dropped"], segments["aspects"]["correctness"]["n"]) == (3, 1, 2)
    assert segments["worst"]["correctness"]["chance"] == 0.5  # of the two that are left


def test_the_worst_by_all_aspects_compares_what_is_known() -> None:
    given = tasks([make_row(1, responses=[make_segmented_response("r", ["a", "b"], [[1, None], [4, 0]])])])
    worst = measured(given, np.array([[0.0, 4.0], [4.0, 0.0]]))["worst"]
    # Segment a is worth 1 by the one aspect that is known of it, and is predicted at 0; b is worth 2, predicted at 2.
    assert (worst["all"]["accuracy"], worst["clarity"]["responses"]) == (1.0, 0)


def test_measures_of_any_predictions_are_json() -> None:
    given = tasks(make_segmented_rows(6))
    count = len(segment_labels(given, ASPECTS))
    for predicted in (np.full((count, 2), 2.0), np.full((count, 2), math.nan)):
        json.dumps(measure_segments(given, predicted, manifest()), allow_nan=False)


def test_a_model_without_a_head_for_segments_has_no_measures() -> None:
    assert measure_segments(tasks(make_segmented_rows(2)), None, manifest()) == {}


def test_a_row_of_predictions_has_its_segments_and_their_errors() -> None:
    plain = {"id": "p", "text": "plain", "scores": {}}
    segmented = make_segmented_response("r", ["a", "b"], [[1, None], [4, 0]])
    given = tasks([make_row(1, responses=[plain, segmented])])
    first, second = segment_fields(given, np.array([[2.0, 2.0], [math.nan, math.nan]]), manifest())
    assert first == {}
    assert second == {
        "segments": [{"correctness": 2.0, "clarity": 2.0}, {}],
        "segment_squared_error": 1.0,
        "segment_labels": 1,
    }
