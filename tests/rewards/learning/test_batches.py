from __future__ import annotations

from rewards.learning.batches import padding_share, shuffled_batches, token_budget_batches


def test_no_batch_exceeds_the_budget() -> None:
    lengths = [3, 50, 7, 20, 1, 9, 33]
    batches = token_budget_batches(lengths, 60)
    assert all(len(batch) * max(lengths[i] for i in batch) <= 60 for batch in batches)


def test_every_item_is_in_one_batch() -> None:
    batches = token_budget_batches([5, 1, 9, 9, 2], 10)
    assert sorted(i for batch in batches for i in batch) == [0, 1, 2, 3, 4]


def test_an_item_longer_than_the_budget_stands_alone() -> None:
    assert token_budget_batches([100, 2, 3], 10) == [[1, 2], [0]]


def test_the_order_depends_on_seed_and_epoch_alone() -> None:
    lengths = list(range(1, 60))
    orders = [shuffled_batches(lengths, 64, seed=s, epoch=e) for s, e in [(1, 0), (1, 0), (1, 1), (2, 0)]]
    assert orders[0] == orders[1]
    assert orders[0] != orders[2]
    assert orders[0] != orders[3]


def test_sorted_batches_hold_less_padding_than_random_ones() -> None:
    lengths = [1, 100] * 20
    assert padding_share(lengths, token_budget_batches(lengths, 400)) < 0.1
    assert padding_share(lengths, [[i, i + 1] for i in range(0, 40, 2)]) > 0.4
