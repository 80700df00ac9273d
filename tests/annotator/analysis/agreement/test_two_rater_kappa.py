"""Kappa of two given raters, and with experts."""

import random

import pytest

from annotator.statistics.measures import against_experts, paired_kappa


def test_paired_kappa_is_scikit_learns() -> None:
    from sklearn.metrics import cohen_kappa_score

    generator = random.Random(3)
    for _ in range(50):
        pairs = [(generator.randrange(5), generator.randrange(5)) for _ in range(12)]
        ones, others = zip(*pairs, strict=True)
        expected = cohen_kappa_score(ones, others, weights="quadratic", labels=range(5))
        assert paired_kappa(pairs) == pytest.approx(expected)


def test_paired_kappa_is_undefined_where_nobody_varies() -> None:
    assert paired_kappa([(3, 3), (3, 3)]) is None
    assert paired_kappa([]) is None


def test_agreement_with_experts_leaves_out_what_they_rate_alike() -> None:
    experts = [{"helpfulness": 4, "coherence": 4}, {"helpfulness": 0, "coherence": 4}]
    result = against_experts([({"helpfulness": expert["helpfulness"], "coherence": 2}, expert) for expert in experts])
    assert result.kappas == {"helpfulness": 1, "coherence": None}
    assert (result.mean, result.identical) == (1, False)
