"""The measures against scikit-learn, krippendorff and their definitions."""

from collections.abc import Sequence
from typing import Literal

import krippendorff
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotator.statistics import measures
from annotator.statistics.measures import Meetings
from annotator.statistics.pair_counts import Kind
from tests.annotator.analysis.agreement.samples import (
    COLUMNS,
    HELPFULNESS,
    Samples,
    by_definition,
    counts_of,
    levels,
    of_any_size,
    of_one_size,
    often,
    ordered_pairs,
    tables_of,
    varies,
)


def pooled(samples: Samples) -> float:
    return float(measures.kappa(tables_of(samples).by_sample[HELPFULNESS]))


def cohen(first: Sequence[int], second: Sequence[int]) -> float:
    from sklearn.metrics import cohen_kappa_score

    return float(cohen_kappa_score(first, second, labels=range(5), weights="quadratic"))


@often
@given(of_one_size.filter(varies))
def test_pooled_kappa_is_cohens_of_the_pooled_pairs(samples: Samples) -> None:
    first, second = zip(*ordered_pairs(samples), strict=True)
    assert pooled(samples) == pytest.approx(cohen(first, second), abs=1e-9)


@often
@given(of_any_size.filter(varies))
def test_samples_weigh_equally_whatever_their_raters(samples: Samples) -> None:
    assert pooled(samples) == pytest.approx(by_definition(samples), abs=1e-9)


def test_kappa_is_undefined_where_nothing_varies() -> None:
    assert np.isnan(pooled([[3, 3], [3, 3, 3]]))


@often
@given(st.lists(st.tuples(levels, levels), min_size=1, max_size=20).filter(varies))
def test_kappa_of_a_pair_is_cohens(samples: Samples) -> None:
    meetings = Meetings.of(counts_of(samples, Kind.PAIR), COLUMNS)
    first, second = zip(*samples, strict=True)
    assert meetings.owners.tolist() == [1 << 32 | 2]
    assert meetings.shared.tolist() == [len(samples)]
    assert measures.kappa(meetings.tables)[0, 0] == pytest.approx(cohen(first, second), abs=1e-9)


@often
@given(of_any_size.filter(varies))
def test_kappa_with_peers_is_cohens_of_all_pairs(samples: Samples) -> None:
    meetings = Meetings.of(counts_of(samples, Kind.RATER), COLUMNS)
    pairs = [(sample[0], other) for sample in samples for other in sample[1:]]
    table = meetings.tables[meetings.owners.tolist().index(1), 0]
    assert measures.bias(table) == pytest.approx(np.mean([a - b for a, b in pairs]))
    if varies(pairs):
        assert measures.kappa(table) == pytest.approx(cohen(*zip(*pairs, strict=True)), abs=1e-9)


@pytest.mark.parametrize("level", ["ordinal", "interval"])
@often
@given(samples=of_any_size.filter(varies))
def test_alpha_is_krippendorffs(level: Literal["ordinal", "interval"], samples: Samples) -> None:
    ratings = [[*sample, *[np.nan] * (5 - len(sample))] for sample in samples]
    expected = krippendorff.alpha(
        reliability_data=np.array(ratings, float).T, level_of_measurement=level, value_domain=range(5)
    )
    alphas = measures.alpha(tables_of(samples).by_rating[HELPFULNESS], ordinal=level == "ordinal")
    assert alphas == pytest.approx(expected, abs=1e-9)


def ranks(values: Sequence[int]) -> list[float]:
    """Ties share the mean of their places."""
    return [sum(other < value for other in values) + (values.count(value) + 1) / 2 for value in values]


@often
@given(of_one_size.filter(varies))
def test_spearman_is_the_correlation_of_the_ranks_of_the_pooled_pairs(samples: Samples) -> None:
    first, second = zip(*ordered_pairs(samples), strict=True)
    expected = np.corrcoef(ranks(list(first)), ranks(list(second)))[0, 1]
    assert measures.spearman(tables_of(samples).by_sample[HELPFULNESS]) == pytest.approx(expected, abs=1e-9)


def test_exact_and_within_one_weigh_responses_equally() -> None:
    table = tables_of([[3, 3], [0, 1, 1], [0, 4]]).by_sample[HELPFULNESS]
    assert measures.exact(table) == pytest.approx((1 + 1 / 3 + 0) / 3)
    assert measures.within_one(table) == pytest.approx(2 / 3)


def test_the_confusion_counts_both_orders() -> None:
    table = tables_of([[3, 3], [0, 1, 1]]).met[HELPFULNESS]
    assert (table[3, 3], table[1, 1], table[0, 1], table[1, 0]) == (2, 2, 2, 2)
    assert table.sum() == 8
