from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch

from rewards.learning.objectives import bradley_terry, margin_bradley_terry, scaled_bradley_terry, squared_errors

PAIR_LOSSES = [bradley_terry, margin_bradley_terry, scaled_bradley_terry]


def test_squared_errors_equal_the_values_computed_by_hand() -> None:
    predicted, target = torch.tensor([[1.0, 2.0], [3.0, 0.0]]), torch.tensor([[2.0, math.nan], [1.0, 3.0]])
    assert squared_errors(predicted, target).tolist() == [[1.0, 0.0], [4.0, 9.0]]


def test_with_all_labels_their_mean_is_the_plain_mean_squared_error() -> None:
    predicted, target = torch.randn(5, 3), torch.randn(5, 3)
    plain = torch.nn.functional.mse_loss(predicted, target)
    torch.testing.assert_close(squared_errors(predicted, target).mean(), plain)


def test_the_gradient_pulls_towards_the_label_and_spares_what_has_none() -> None:
    predicted = torch.tensor([[1.0, 3.0, 5.0]], requires_grad=True)
    errors = squared_errors(predicted, torch.tensor([[2.0, 2.0, math.nan]]))
    errors.sum().backward()  # type: ignore[no-untyped-call]
    assert predicted.grad is not None
    assert predicted.grad.sign().tolist() == [[-1.0, 1.0, 0.0]]


def test_the_pair_losses_equal_the_values_computed_by_hand() -> None:
    chosen, rejected, strength = torch.tensor([2.0]), torch.tensor([1.0]), torch.tensor([3.0])
    values = [loss(chosen, rejected, strength).item() for loss in PAIR_LOSSES]
    expected = [math.log(1 + math.exp(-1)), math.log(1 + math.exp(2)), 3 * math.log(1 + math.exp(-1))]
    assert values == pytest.approx(expected)


def test_of_strength_one_the_scaled_loss_is_the_plain_one() -> None:
    chosen, rejected = torch.randn(5), torch.randn(5)
    plain = bradley_terry(chosen, rejected, torch.ones(5))
    torch.testing.assert_close(scaled_bradley_terry(chosen, rejected, torch.ones(5)), plain)


def test_without_a_margin_the_margin_loss_is_the_plain_one() -> None:
    chosen, rejected = torch.randn(5), torch.randn(5)
    plain = bradley_terry(chosen, rejected, torch.ones(5))
    torch.testing.assert_close(margin_bradley_terry(chosen, rejected, torch.zeros(5)), plain)


@pytest.mark.parametrize("loss", PAIR_LOSSES)
def test_its_gradient_raises_the_chosen_and_lowers_the_rejected(loss: Callable[..., torch.Tensor]) -> None:
    rewards = torch.zeros(2, requires_grad=True)
    loss(rewards[:1], rewards[1:], torch.tensor([2.0])).sum().backward()  # type: ignore[no-untyped-call]
    assert rewards.grad is not None
    assert rewards.grad.sign().tolist() == [-1.0, 1.0]


@pytest.mark.parametrize("loss", PAIR_LOSSES)
def test_rewards_far_apart_overflow_nothing(loss: Callable[..., torch.Tensor]) -> None:
    assert torch.isfinite(loss(torch.tensor([-1e4]), torch.tensor([1e4]), torch.tensor([1.0]))).all()
