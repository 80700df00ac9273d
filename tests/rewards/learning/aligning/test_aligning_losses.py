from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from rewards.learning.aligning.objective import dpo, dpo_1d, dpo_2d, negative_log_likelihood, segment_sums

ONES = torch.ones(1, 2)


def log_sigmoid(value: float) -> float:
    return -math.log(1 + math.exp(-value))


def random_segments() -> tuple[Tensor, Tensor]:
    return torch.randn(5, 3, dtype=torch.float64), torch.randn(5, 3, dtype=torch.float64)


# The likelihood ----------------------------------------------------------------------------------------------


def test_the_likelihood_of_a_coin_costs_log_2() -> None:
    assert negative_log_likelihood(torch.tensor([math.log(0.5)])).item() == pytest.approx(math.log(2))


def test_a_certain_token_costs_nothing() -> None:
    assert negative_log_likelihood(torch.zeros(3)).tolist() == [0, 0, 0]


def test_the_likelihood_s_gradient_raises_the_token() -> None:
    log_probs = torch.tensor([-1.0], requires_grad=True)
    negative_log_likelihood(log_probs).sum().backward()  # type: ignore[no-untyped-call]
    assert log_probs.grad is not None
    assert log_probs.grad.item() < 0


# DPO -----------------------------------------------------------------------------------------------------------


def test_dpo_equals_the_value_computed_by_hand() -> None:
    value = dpo(torch.tensor([3.0]), torch.tensor([-1.0]), beta=0.5)
    assert value.item() == pytest.approx(-log_sigmoid(0.5 * (3 - -1)))


def test_a_policy_that_equals_its_reference_has_dpo_s_log_2() -> None:
    assert dpo(torch.zeros(1), torch.zeros(1), beta=7.0).item() == pytest.approx(math.log(2))


def test_dpo_s_gradient_raises_the_chosen_and_lowers_the_rejected() -> None:
    ratios = torch.zeros(2, requires_grad=True)
    dpo(ratios[:1], ratios[1:], beta=0.1).sum().backward()  # type: ignore[no-untyped-call]
    assert ratios.grad is not None
    assert ratios.grad.sign().tolist() == [-1, 1]


def test_log_ratios_far_apart_overflow_nothing() -> None:
    assert torch.isfinite(dpo(torch.tensor([-1e4]), torch.tensor([1e4]), beta=1.0)).all()


# One dimension -------------------------------------------------------------------------------------------------


def test_dpo_1d_equals_the_value_computed_by_hand() -> None:
    value = dpo_1d(
        torch.tensor([[2.0, 1.0]]),
        torch.tensor([[-1.0, 3.0]]),
        torch.tensor([[4.0, 0.5]]),
        torch.tensor([[3.0, 1.0]]),
        beta=0.1,
    )
    assert value.item() == pytest.approx(-log_sigmoid(0.1 * (4 * 2 + 0.5 * 1) - 0.1 * (3 * -1 + 1 * 3)))


def test_with_equal_weights_dpo_1d_is_dpo() -> None:
    chosen, rejected = random_segments()
    ones = torch.ones_like(chosen)
    plain = dpo(chosen.sum(dim=1), rejected.sum(dim=1), beta=0.3)
    torch.testing.assert_close(dpo_1d(chosen, rejected, ones, ones, beta=0.3), plain)


def test_weights_that_are_all_c_are_a_beta_c_times_as_large() -> None:
    chosen, rejected = random_segments()
    threes = torch.full_like(chosen, 3.0)
    plain = dpo(chosen.sum(dim=1), rejected.sum(dim=1), beta=0.9)
    torch.testing.assert_close(dpo_1d(chosen, rejected, threes, threes, beta=0.3), plain)


def test_dpo_1d_s_gradient_spares_a_segment_of_weight_0() -> None:
    chosen = torch.zeros(1, 2, requires_grad=True)
    rejected = torch.zeros(1, 2, requires_grad=True)
    weights = torch.tensor([[2.0, 0.0]])
    dpo_1d(chosen, rejected, weights, weights, beta=0.1).sum().backward()  # type: ignore[no-untyped-call]
    assert chosen.grad is not None
    assert rejected.grad is not None
    assert chosen.grad.sign().tolist() == [[-1, 0]]
    assert rejected.grad.sign().tolist() == [[1, 0]]


# Two dimensions ------------------------------------------------------------------------------------------------


def test_dpo_2d_equals_the_value_computed_by_hand() -> None:
    value = dpo_2d(
        torch.tensor([[2.0, 1.0]]),
        torch.tensor([[-1.0, 3.0]]),
        torch.tensor([[4.0, 0.5]]),
        torch.tensor([[3.0, 1.0]]),
        ONES,
        beta=0.1,
    )
    first, second = 0.1 * (4 * 2 - 3 * -1), 0.1 * (0.5 * 1 - 1 * 3)
    assert value.item() == pytest.approx(-log_sigmoid(first) - log_sigmoid(second))


def test_with_one_segment_of_weight_1_dpo_2d_is_dpo() -> None:
    chosen, rejected = torch.randn(5, 1), torch.randn(5, 1)
    ones = torch.ones_like(chosen)
    plain = dpo(chosen[:, 0], rejected[:, 0], beta=0.3)
    torch.testing.assert_close(dpo_2d(chosen, rejected, ones, ones, ones, beta=0.3), plain)


def test_a_column_that_does_not_match_costs_nothing() -> None:
    chosen, rejected = torch.randn(5, 1), torch.randn(5, 1)
    ones, nothing = torch.ones_like(chosen), torch.zeros_like(chosen)
    more, less = (torch.cat([values, torch.randn(5, 1)], dim=1) for values in (chosen, rejected))
    weights, matched = torch.cat([ones, ones], dim=1), torch.cat([ones, nothing], dim=1)
    narrow = dpo_2d(chosen, rejected, ones, ones, ones, beta=0.3)
    torch.testing.assert_close(dpo_2d(more, less, weights, weights, matched, beta=0.3), narrow)


def test_dpo_2d_s_gradient_raises_good_and_lowers_bad_segments() -> None:
    chosen = torch.zeros(1, 2, requires_grad=True)
    rejected = torch.zeros(1, 2, requires_grad=True)
    dpo_2d(chosen, rejected, ONES, ONES, ONES, beta=0.1).sum().backward()  # type: ignore[no-untyped-call]
    assert chosen.grad is not None
    assert rejected.grad is not None
    assert chosen.grad.sign().tolist() == [[-1, -1]]
    assert rejected.grad.sign().tolist() == [[1, 1]]


# Sums ----------------------------------------------------------------------------------------------------------


def test_segment_sums_equal_those_computed_by_hand() -> None:
    sums = segment_sums(torch.tensor([1.0, 2.0, 4.0, 8.0]), torch.tensor([0, 3, 3, -1]), rows=2, columns=2)
    assert sums.tolist() == [[1, 0], [0, 6]]


def test_one_segment_sums_up_its_whole_row() -> None:
    values = torch.randn(6)
    torch.testing.assert_close(
        segment_sums(values, torch.zeros(6, dtype=torch.int64), rows=1, columns=1)[0, 0], values.sum()
    )


def test_the_gradient_of_a_sum_reaches_the_tokens_of_its_segment_alone() -> None:
    values = torch.zeros(3, requires_grad=True)
    segment_sums(values, torch.tensor([0, 1, -1]), rows=1, columns=2)[0, 1].backward()  # type: ignore[no-untyped-call]
    assert values.grad is not None
    assert values.grad.tolist() == [0, 1, 0]
