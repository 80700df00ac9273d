"""Segments are joined and split; cuts are compared on the finest one that they have in common."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotator.infrastructure.limits import MOST_SEGMENTS
from annotator.stages.segmenting import CannotRecut, Range, carried, finest_common_cut, is_partition, joined, split
from tests.annotator.stages.segmenting.cuts import cuts
from tests.refusals import refusal

CUT = (Range(0, 5), Range(5, 10), Range(10, 16))
TEXT = "One. Two.\nThree."


def test_neighbours_are_joined() -> None:
    assert joined(CUT, 1, last=2) == (Range(0, 5), Range(5, 16))


def test_all_segments_can_be_joined() -> None:
    assert joined(CUT, 0, last=2) == (Range(0, 16),)


@pytest.mark.parametrize(("first", "last"), [(1, 1), (2, 1), (-1, 1), (1, 3)])
def test_segments_that_are_no_neighbours_are_not_joined(first: int, last: int) -> None:
    with pytest.raises(CannotRecut, match="Choose two or more of the segments 1 to 3"):
        joined(CUT, first, last=last)


def test_a_segment_is_split() -> None:
    assert split((Range(0, 16),), TEXT, at=10) == (Range(0, 10), Range(10, 16))


def test_white_space_at_a_split_goes_to_the_segment_before() -> None:
    assert split((Range(0, 16),), TEXT, at=4) == (Range(0, 5), Range(5, 16))


@pytest.mark.parametrize("at", [0, 5, 16, 17, -1])
def test_nothing_is_split_at_a_boundary_or_outside(at: int) -> None:
    with pytest.raises(CannotRecut, match=f"No segment can be split at {at}"):
        split(CUT, TEXT, at=at)


@pytest.mark.parametrize(("text", "at"), [("One. ", 4), ("  One", 1), ("  One", 2)])
def test_no_part_of_a_split_is_white_space_alone(text: str, at: int) -> None:
    with pytest.raises(CannotRecut, match="would have no words"):
        split((Range(0, 5),), text, at=at)


@pytest.mark.parametrize("text", ["ae\u0301b", "a👩\u200d🚀b", "a🇩🇪b"])
def test_no_character_is_split(text: str) -> None:
    with pytest.raises(CannotRecut, match="inside a character"):
        split((Range(0, len(text)),), text, at=2)


def test_a_text_with_the_most_segments_is_not_split() -> None:
    text = "aa" * MOST_SEGMENTS
    with pytest.raises(CannotRecut, match="no more are accepted"):
        split([Range(at, at + 2) for at in range(0, len(text), 2)], text, at=1)


def test_the_finest_common_cut_has_the_boundaries_of_all() -> None:
    assert finest_common_cut([[Range(0, 4), Range(4, 9)], [Range(0, 6), Range(6, 9)]]) == (
        Range(0, 4),
        Range(4, 6),
        Range(6, 9),
    )


def test_cuts_of_different_texts_have_none_in_common() -> None:
    with refusal("different_texts"):
        finest_common_cut([[Range(0, 4)], [Range(0, 5)]])


def test_no_cuts_have_an_empty_one_in_common() -> None:
    assert finest_common_cut([]) == finest_common_cut([(), ()]) == ()


def test_scores_are_carried_onto_a_finer_cut() -> None:
    assert carried([4, 1], [Range(0, 6), Range(6, 9)], onto=[Range(0, 4), Range(4, 6), Range(6, 9)]) == (4, 4, 1)


@pytest.mark.parametrize("onto", [[Range(0, 9)], [Range(0, 6), Range(6, 10)]])
def test_scores_are_not_carried_onto_a_cut_that_is_not_finer(onto: Sequence[Range]) -> None:
    with refusal("not_finer", match="lie in no single rated segment"):
        carried([4, 1], [Range(0, 6), Range(6, 9)], onto=onto)


def test_a_score_for_each_segment_is_needed() -> None:
    with pytest.raises(ValueError, match="1 values for 2 segments"):
        carried([4], [Range(0, 6), Range(6, 9)], onto=[])


@given(st.integers(1, 30).flatmap(lambda length: st.lists(cuts(length), min_size=1, max_size=4)))
def test_the_finest_common_cut_refines_every_cut(some: list[tuple[Range, ...]]) -> None:
    finest = finest_common_cut(some)
    assert is_partition(some[0][-1].end, finest)
    for one in some:
        assert {segment.start for segment in one} <= {segment.start for segment in finest}


@given(st.integers(1, 30).flatmap(lambda length: st.lists(cuts(length), min_size=1, max_size=4)))
def test_the_finest_common_cut_has_no_boundary_of_its_own(some: list[tuple[Range, ...]]) -> None:
    starts = {segment.start for one in some for segment in one}
    assert {segment.start for segment in finest_common_cut(some)} == starts


@given(st.integers(1, 30).flatmap(lambda length: st.tuples(cuts(length), cuts(length))))
def test_a_carried_value_is_that_of_the_segment_around(pair: tuple[tuple[Range, ...], tuple[Range, ...]]) -> None:
    one, other = pair
    finest = finest_common_cut([one, other])
    for part, segment in zip(finest, carried(one, one, onto=finest), strict=True):
        assert segment.start <= part.start < part.end <= segment.end


@given(st.integers(2, 30).flatmap(cuts).filter(lambda cut: len(cut) > 1), st.data())
def test_a_split_takes_back_a_join(cut: tuple[Range, ...], data: st.DataObject) -> None:
    first = data.draw(st.integers(0, len(cut) - 2))
    text = "a" * cut[-1].end
    assert split(joined(cut, first, last=first + 1), text, at=cut[first].end) == cut
