"""Segments that come from outside partition their text, or the refusal names the wrong one and the remedy."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotator.infrastructure.limits import LONGEST_CUT_TEXT, MOST_SEGMENTS
from annotator.stages.segmenting import NotAPartition, Range, is_partition, partition, partition_by_texts, whole

TEXT = "One. Two.\nThree."


def refusal(ranges: list[list[int]], text: str = TEXT) -> str:
    with pytest.raises(NotAPartition) as refused:
        partition(text, ranges)
    return str(refused.value)


def refusal_of_texts(parts: list[str]) -> str:
    with pytest.raises(NotAPartition) as refused:
        partition_by_texts(TEXT, parts)
    return str(refused.value)


def test_ranges_that_partition_the_text_are_taken() -> None:
    assert partition(TEXT, [[0, 5], [5, 10], [10, 16]]) == (Range(0, 5), Range(5, 10), Range(10, 16))


def test_a_text_without_ranges_is_one_segment() -> None:
    assert partition(TEXT, []) == partition_by_texts(TEXT, []) == whole(TEXT) == (Range(0, 16),)


def test_an_empty_text_has_no_segments() -> None:
    assert partition("", []) == whole("") == ()


def test_a_gap_is_refused() -> None:
    assert refusal([[0, 5], [6, 16]]) == "Characters 5 to 6, before segment 2, belong to none. Begin it at 5."


def test_a_gap_at_the_beginning_is_refused() -> None:
    assert refusal([[1, 16]]) == "Characters 0 to 1, before segment 1, belong to none. Begin it at 0."


def test_a_missing_end_is_refused() -> None:
    assert refusal([[0, 5]]) == "The last segment ends at 5, but the text has 16 characters. End it there."


def test_an_overlap_is_refused() -> None:
    message = refusal([[0, 5], [4, 16]])
    assert message.startswith("Segment 2 begins at 4, inside the segment before it, which ends at 5. Begin it at 5")


def test_an_empty_range_is_refused() -> None:
    assert refusal([[0, 5], [5, 5], [5, 16]]) == "Segment 2 is empty (5 to 5). Leave it out."


def test_a_reversed_range_is_refused() -> None:
    assert refusal([[5, 0], [5, 16]]) == "Segment 1 ends at 0, before it begins (5). Swap the two numbers."


def test_a_range_beyond_the_text_is_refused() -> None:
    assert refusal([[0, 17]]).startswith("Segment 1 (0 to 17) reaches beyond the text, which has 16 characters.")


def test_a_negative_position_is_refused() -> None:
    assert refusal([[-1, 16]]).startswith("Segment 1 (-1 to 16) reaches beyond the text")


@pytest.mark.parametrize(
    "item", [[0], [0, 1, 2], [0, True], [0, 16.0], ["0", "16"], "ab", None, 5, {"start": 0, "end": 1}]
)
def test_what_is_no_pair_of_whole_numbers_is_refused(item: object) -> None:
    with pytest.raises(NotAPartition, match="Segment 1 is not a pair of whole numbers"):
        partition(TEXT, [item])  # type: ignore[list-item]


def test_too_many_ranges_are_refused() -> None:
    count = MOST_SEGMENTS + 1
    assert refusal([[at, at + 1] for at in range(count)], "a" * count) == (
        f"The text has {count} segments, and at most {MOST_SEGMENTS} are accepted. Join some of them."
    )


def test_as_many_ranges_as_are_allowed_are_taken() -> None:
    assert len(partition("a" * MOST_SEGMENTS, [[at, at + 1] for at in range(MOST_SEGMENTS)])) == MOST_SEGMENTS


def test_a_text_that_is_too_long_is_not_cut() -> None:
    assert "cannot be cut" in refusal([[0, 1], [1, LONGEST_CUT_TEXT + 1]], "a" * (LONGEST_CUT_TEXT + 1))


def test_a_text_that_is_too_long_may_be_one_segment() -> None:
    assert partition("a" * (LONGEST_CUT_TEXT + 1), [[0, LONGEST_CUT_TEXT + 1]]) == (Range(0, LONGEST_CUT_TEXT + 1),)


def test_a_refusal_says_to_which_field_it_belongs() -> None:
    with pytest.raises(NotAPartition) as refused:
        partition(TEXT, [[0, 5]])
    assert list(refused.value.errors) == ["segments"]


def test_texts_become_ranges() -> None:
    assert partition_by_texts(TEXT, ["One. ", "Two.\n", "Three."]) == (Range(0, 5), Range(5, 10), Range(10, 16))


def test_white_space_that_texts_leave_out_belongs_to_the_segment_before() -> None:
    assert partition_by_texts("  One. Two.\n", ["One.", "Two."]) == (Range(0, 7), Range(7, 12))


def test_white_space_that_texts_add_is_ignored() -> None:
    assert partition_by_texts("One.Two.", [" One. ", "\nTwo. "]) == (Range(0, 4), Range(4, 8))


def test_a_text_that_does_not_come_next_is_refused() -> None:
    assert refusal_of_texts(["One.", "Three."]) == (
        "Segment 2 does not follow the one before: the text goes on with “Two.\nThree.”. Give the segments in order "
        "and unchanged."
    )


def test_texts_that_end_early_are_refused() -> None:
    assert refusal_of_texts(["One.", "Two."]) == "The segments end before “Three.”. Add the rest of the text."


def test_an_empty_text_among_segments_is_refused() -> None:
    assert refusal_of_texts(["One.", " ", "Two.\nThree."]) == "Segment 2 is empty. Leave it out."


def test_more_texts_than_are_allowed_are_refused() -> None:
    assert "Join some of them" in refusal_of_texts(["a"] * (MOST_SEGMENTS + 1))


@given(parts=st.lists(st.text(st.characters(), min_size=1, max_size=9).filter(lambda part: part.strip()), max_size=9))
def test_the_texts_of_a_partition_give_its_ranges(parts: list[str]) -> None:
    text = "".join(parts)
    ranges = partition_by_texts(text, parts)
    assert [segment.of(text) for segment in ranges] == parts


@given(ranges=st.lists(st.tuples(st.integers(-1, 9), st.integers(-1, 9)), min_size=1, max_size=4))
def test_whatever_is_not_refused_is_a_partition(ranges: list[tuple[int, int]]) -> None:
    try:
        taken = partition("12345678", ranges)
    except NotAPartition:
        assert not is_partition(8, [Range(*pair) for pair in ranges])
    else:
        assert is_partition(8, taken)
