"""Cuts for hypothesis: ranges that partition a text of some length."""

from itertools import pairwise

from hypothesis import strategies as st

from annotator.stages.segmenting import Range


def cuts(length: int) -> st.SearchStrategy[tuple[Range, ...]]:
    """Every way to cut a text that has at least one character."""
    inner = st.sets(st.integers(1, length - 1)) if length > 1 else st.just(set[int]())
    return inner.map(lambda bounds: tuple(Range(*pair) for pair in pairwise([0, *sorted(bounds), length])))
