from __future__ import annotations

from collections.abc import Sequence

import pytest

from rewards.learning.batches import Batch, Sizes


def padded_batches(lengths: Sequence[int], budget: int) -> list[Batch]:
    return Sizes(lengths, [1] * len(lengths), lengths, padded=True).batches(range(len(lengths)), budget)


def test_no_batch_exceeds_the_budget() -> None:
    lengths = [3, 50, 7, 20, 1, 9, 33]
    batches = padded_batches(lengths, 60)
    assert all(len(batch) * max(lengths[i] for i in batch) <= 60 for batch in batches)


def test_every_item_is_in_one_batch() -> None:
    batches = padded_batches([5, 1, 9, 9, 2], 10)
    assert sorted(i for batch in batches for i in batch) == [0, 1, 2, 3, 4]


def test_an_item_longer_than_the_budget_stands_alone() -> None:
    assert padded_batches([100, 2, 3], 10) == [[1, 2], [0]]


def steps(sizes: Sizes, *, batch_size: int = 0, seed: int = 1, epoch: int = 0) -> list[list[int]]:
    return sizes.epoch(batch_tokens=64, batch_size=batch_size, seed=seed, epoch=epoch)


@pytest.mark.parametrize("padded", [True, False])
@pytest.mark.parametrize("batch_size", [0, 7])
def test_the_order_depends_on_seed_and_epoch_alone(*, padded: bool, batch_size: int) -> None:
    sizes = make_sizes(range(1, 60), padded=padded)
    orders = [steps(sizes, batch_size=batch_size, seed=s, epoch=e) for s, e in [(1, 0), (1, 0), (1, 1), (2, 0)]]
    assert orders[0] == orders[1]
    assert orders[0] not in orders[2:]
    assert sorted(unit for step in orders[0] for unit in step) == list(range(59))


def test_a_step_of_so_many_units_holds_so_many() -> None:
    assert [len(step) for step in steps(make_sizes([5] * 10, padded=False), batch_size=4)] == [4, 4, 2]


def test_packed_units_fill_the_budget_in_any_order() -> None:
    sizes = make_sizes([60, 1, 3, 40, 25], padded=False)
    assert sizes.batches([0, 1, 2, 3, 4], 64) == [[0, 1, 2], [3], [4]]
    assert sizes.padding_share([[0, 1, 2], [3, 4]]) == 0


def test_a_unit_of_several_padded_rows_costs_its_widest_row_each() -> None:
    sizes = Sizes([10, 20], [2, 3], [15, 50], padded=True)
    assert sizes.tokens([0, 1]) == 5 * 20
    assert sizes.batches([0, 1], 99) == [[0], [1]]
    assert sizes.padding_share([[0, 1]]) == pytest.approx(0.35)


def test_sorted_batches_hold_less_padding_than_random_ones() -> None:
    sizes = make_sizes([1, 100] * 20, padded=True)
    assert sizes.padding_share(sizes.batches(range(40), 400)) < 0.1
    assert sizes.padding_share([[i, i + 1] for i in range(0, 40, 2)]) > 0.4


def make_sizes(lengths: Sequence[int], *, padded: bool) -> Sizes:
    return Sizes(lengths, [1] * len(lengths), lengths, padded=padded)
