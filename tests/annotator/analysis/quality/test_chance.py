"""Exact chances, against SciPy."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, binomtest, false_discovery_control

from annotator.analysis.quality.flags import at_least, stand_out, two_sided


@given(st.integers(1, 400).flatmap(lambda flips: st.tuples(st.integers(0, flips), st.just(flips))))
def test_a_fair_coin(heads_and_flips: tuple[int, int]) -> None:
    heads, flips = heads_and_flips
    assert two_sided(heads, flips) == pytest.approx(binomtest(heads, flips).pvalue, rel=1e-9)


@given(st.integers(0, 60), st.integers(1, 60), st.floats(0.01, 0.99))
def test_so_many_successes_or_more(successes: int, tries: int, probability: float) -> None:
    assert at_least(successes, tries, probability) == pytest.approx(
        binom.sf(successes - 1, tries, probability), abs=1e-12
    )


@pytest.mark.parametrize(("probability", "chance"), [(0.0, 0.0), (1.0, 1.0)])
def test_certainties(probability: float, chance: float) -> None:
    assert at_least(3, 5, probability) == chance


@given(st.lists(st.floats(0.0001, 1), min_size=1, max_size=20))
def test_as_many_stand_out_as_by_benjamini_and_hochberg(chances: list[float]) -> None:
    adjusted = false_discovery_control(chances)
    assert [chance for chance, is_out in zip(chances, stand_out(chances, rate=0.05), strict=True) if is_out] == [
        chance for chance, adjusted_chance in zip(chances, adjusted, strict=True) if adjusted_chance <= 0.05
    ]


def test_many_flips_take_no_time() -> None:
    assert 0 < two_sided(25_600, 50_000) < 1e-6
