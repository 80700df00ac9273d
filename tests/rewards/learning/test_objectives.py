from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from rewards.learning.answers import Answers, Predicted, SegmentAnswers, answers_of, as_pairs
from rewards.learning.data import Task, read_tasks
from rewards.learning.objectives import Objective, segment_loss, whole_loss
from rewards.learning.pairs import better
from tests.rewards.learning.builders import Row, make_response, make_row, write_jsonl

REWARD = {"helpfulness": 1.0, "verbosity": -0.5}


def make_answers(rows: int = 6, *, seed: int = 0) -> Answers:
    random = np.random.default_rng(seed)
    labels = random.integers(0, 5, size=(rows, 2)).astype(float)
    labels[1, 0] = math.nan
    pairs = as_pairs([[row, row + 1] for row in range(0, rows, 2)])
    return Answers(labels, np.isfinite(labels).astype(float), pairs, np.array([1.0, 2.0, 3.0])[: len(pairs)])


def read(tmp_path: Path, *rows: Row) -> list[Task]:
    return list(read_tasks(write_jsonl(tmp_path / "rows.jsonl", rows)))


@pytest.mark.parametrize("name", ["regression", "bradley_terry", "margin", "scaled", "joint"])
def test_parts_of_a_batch_add_up_to_the_whole(name: str) -> None:
    """Stock trainers multiply loss and gradient by the number of parts and of processes."""
    objective, answers, scores = Objective(name, (1.0, -0.5)), make_answers(), torch.randn(6, 2, requires_grad=True)
    counts = objective.counts(answers)
    whole = objective.loss(scores, answers, counts)
    parts = [objective.loss(scores[i : i + 2], answers.of_rows([i, i + 1]), counts) for i in (0, 2, 4)]
    torch.testing.assert_close(torch.stack(parts).sum(), whole)
    gradients = [torch.autograd.grad(loss, scores, retain_graph=True)[0] for loss in (whole, torch.stack(parts).sum())]
    torch.testing.assert_close(*gradients)


def test_joint_is_the_sum_of_both() -> None:
    answers, scores = make_answers(), torch.randn(6, 2)
    losses = [
        Objective(name, (1.0, 0.0)).loss(scores, answers, (11.0, 3.0))
        for name in ("joint", "regression", "bradley_terry")
    ]
    torch.testing.assert_close(losses[0], losses[1] + losses[2])


def test_nothing_to_lose_by_is_no_number() -> None:
    answers = Answers(np.full((2, 2), math.nan), np.zeros((2, 2)), as_pairs([]), np.zeros(0))
    assert math.isnan(Objective("joint", (1.0, 1.0)).total(np.zeros((2, 2)), answers))


def test_a_pair_goes_with_both_of_its_rows_only() -> None:
    answers = make_answers()
    assert answers.of_rows([3, 2, 5]).pairs.tolist() == [[1, 0]]
    assert answers.of_rows([3, 2]).strengths.tolist() == [2.0]


def test_people_s_preference_tells_which_is_better_and_by_how_much(tmp_path: Path) -> None:
    responses = [make_response(n, n, {"helpfulness": h, "verbosity": 2}) for n, h in (("a", 4), ("b", 1))]
    (task,) = read(tmp_path, {**make_row(1, responses=responses), "preference": 3})
    assert list(better(task, REWARD)) == [(1, 0, 3.0)]


def test_else_the_labels_do(tmp_path: Path) -> None:
    rated = [("a", 4, 4), ("b", 1, 0), ("c", 3, 2)]
    responses = [make_response(n, n, {"helpfulness": h, "verbosity": v}) for n, h, v in rated]
    (task,) = read(tmp_path, make_row(1, responses=responses))
    assert list(better(task, REWARD)) == [(0, 1, 1.0), (2, 1, 1.0)]  # a and c are worth 2 each


def test_a_response_without_labels_is_in_no_pair(tmp_path: Path) -> None:
    responses = [
        make_response("a", "a", {"helpfulness": 4}),
        make_response("b", "b", {"helpfulness": 1, "verbosity": 1}),
    ]
    (task,) = read(tmp_path, make_row(1, responses=responses))
    assert list(better(task, REWARD)) == []


def test_a_label_counts_the_less_the_more_its_ratings_vary(tmp_path: Path) -> None:
    agreed = {**make_response("a", "a", {"helpfulness": 2}), "ratings": [{"helpfulness": 2}] * 3}
    split = {**make_response("b", "b", {"helpfulness": 2}), "ratings": [{"helpfulness": n} for n in (0, 2, 4)]}
    tasks = read(tmp_path, make_row(1, responses=[agreed, split]))
    answers = answers_of(tasks, ["helpfulness"], reward=REWARD, rounded=False, by_agreement=True)
    assert answers.weights.mean() == pytest.approx(1)
    assert answers.weights[0, 0] / answers.weights[1, 0] == pytest.approx(1 + 8 / 3)


def test_a_label_may_be_the_mean_or_the_rounded_one(tmp_path: Path) -> None:
    response = {**make_response("a", "a", {"helpfulness": 2.67}), "labels": {"helpfulness": 3}}
    tasks = read(tmp_path, make_row(1, responses=[response]))
    answers = [
        answers_of(tasks, ["helpfulness"], reward=REWARD, rounded=rounded, by_agreement=False).labels[0, 0]
        for rounded in (False, True)
    ]
    assert answers == [2.67, 3]


# Segments --------------------------------------------------------------------------------------------------


def of_segments(*labels: list[float], bounds: list[int]) -> SegmentAnswers:
    return SegmentAnswers(np.array(labels), np.array(bounds))


SEGMENTS = of_segments([4.0, math.nan], [1.0, 0.0], [math.nan, 2.0], bounds=[0, 2, 2, 3])


def test_the_loss_of_segments_by_hand() -> None:
    scores = torch.tensor([[3.0, 9.0], [1.0, 2.0], [9.0, 2.5]])
    assert segment_loss(scores, SEGMENTS, SEGMENTS.known()).item() == pytest.approx((1 + 0 + 4 + 0.25) / 4)


def test_one_segment_a_response_is_the_loss_of_responses() -> None:
    answers, scores = make_answers(), torch.randn(6, 2)
    as_segments = SegmentAnswers(answers.labels, np.arange(7))
    expected = Objective("regression", (1.0, 1.0)).loss(scores, answers, (11.0, 3.0))
    torch.testing.assert_close(segment_loss(scores, as_segments, as_segments.known()), expected)


def test_scores_move_towards_their_labels_and_not_where_there_is_none() -> None:
    scores = torch.tensor([[3.0, 9.0], [2.0, 0.0], [9.0, 1.0]], requires_grad=True)
    gradient = torch.autograd.grad(segment_loss(scores, SEGMENTS, 4), scores)[0]
    assert torch.sign(gradient).tolist() == [[-1, 0], [1, 0], [0, -1]]


def test_segments_go_with_their_rows() -> None:
    part = SEGMENTS.of_rows([2, 1, 0])
    assert part.bounds.tolist() == [0, 1, 1, 3]
    np.testing.assert_array_equal(part.labels, SEGMENTS.labels[[2, 0, 1]])
    assert SEGMENTS.of_rows([1]).known() == 0


def test_the_whole_loss_adds_the_segments_by_their_weight() -> None:
    responses = Answers(np.array([[1.0]]), np.ones((1, 1)), as_pairs([]), np.zeros(0))
    unrated = replace(responses, labels=np.array([[math.nan]]), weights=np.zeros((1, 1)))
    segments = of_segments([2.0], bounds=[0, 1])
    said = Predicted(np.array([[3.0]]), np.array([[5.0]]))
    objective = Objective("regression", (1.0,))

    def loss(answers: Answers, predicted: Predicted = said) -> float:
        return whole_loss(objective, predicted, answers, segment_weight=0.5)

    assert loss(replace(responses, segments=segments)) == 4 + 0.5 * 9
    assert loss(responses, Predicted(said.responses)) == 4
    assert loss(replace(unrated, segments=segments)) == 0.5 * 9
    assert loss(replace(responses, segments=of_segments([math.nan], bounds=[0, 1]))) == 4
    assert math.isnan(loss(replace(unrated, segments=of_segments([math.nan], bounds=[0, 1]))))
