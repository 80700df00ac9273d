"""A range keeps its own characters when parts of the text are replaced, or it goes. It never shows others."""

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotator.stages.pii.redaction import Eraser
from annotator.stages.segmenting import Range, Replacement, WrongReplacements, is_partition, moved, replaced
from tests.annotator.stages.segmenting.cuts import cuts

TEXT = "Call Ola. She knows. Bye."
CUT = (Range(0, 10), Range(10, 21), Range(21, 25))


def texts_of(replacements: list[Replacement]) -> list[str | None]:
    new = replaced(TEXT, replacements)
    return [place and place.of(new) for place in moved(CUT, replacements)]


@st.composite
def replacements_in(draw: st.DrawFn, length: int) -> list[Replacement]:
    """Some replacements in a text; they may touch each other, and may be replaced by nothing."""
    bounds = sorted(draw(st.lists(st.integers(0, length), max_size=8)))
    spans = [(start, end) for start, end in list(pairwise(bounds))[::2] if start < end]
    # Capitals, as the texts of the properties below have small letters.
    return [Replacement(start, end, draw(st.text("XYZ", max_size=5))) for start, end in spans]


def test_segments_behind_a_replacement_move() -> None:
    assert texts_of([Replacement(5, 8, "[removed]")]) == ["Call [removed]. ", "She knows. ", "Bye."]


def test_a_replacement_over_a_boundary_belongs_to_the_segment_in_which_it_begins() -> None:
    assert texts_of([Replacement(5, 13, "X")]) == ["Call X", " knows. ", "Bye."]


def test_a_segment_of_which_nothing_is_left_goes() -> None:
    assert texts_of([Replacement(5, 23, "X")]) == ["Call X", None, "e."]


def test_a_segment_that_is_replaced_as_a_whole_shows_the_new_text() -> None:
    assert texts_of([Replacement(10, 21, "X")]) == ["Call Ola. ", "X", "Bye."]


def test_a_segment_that_is_replaced_by_nothing_goes() -> None:
    assert texts_of([Replacement(10, 21, "")]) == ["Call Ola. ", None, "Bye."]


def test_nothing_moves_without_replacements() -> None:
    assert moved(CUT, []) == CUT


@pytest.mark.parametrize(
    "replacements",
    [
        [Replacement(5, 8, "X"), Replacement(7, 9, "X")],
        [Replacement(7, 9, "X"), Replacement(0, 2, "X")],
        [Replacement(5, 5, "X")],
        [Replacement(8, 5, "X")],
        [Replacement(-1, 2, "X")],
    ],
)
def test_replacements_that_describe_no_new_text_are_refused(replacements: list[Replacement]) -> None:
    with pytest.raises(WrongReplacements):
        moved(CUT, replacements)


def test_a_replacement_behind_the_text_is_refused() -> None:
    with pytest.raises(WrongReplacements):
        replaced(TEXT, [Replacement(24, 26, "X")])


@given(st.integers(1, 40).flatmap(lambda length: st.tuples(cuts(length), replacements_in(length))))
def test_the_segments_that_stay_partition_the_new_text(case: tuple[tuple[Range, ...], list[Replacement]]) -> None:
    cut, replacements = case
    new = replaced("a" * cut[-1].end, replacements)
    assert is_partition(len(new), [place for place in moved(cut, replacements) if place])


@given(st.integers(1, 26).flatmap(lambda length: st.tuples(cuts(length), replacements_in(length))))
def test_a_segment_shows_its_own_characters_and_no_others(case: tuple[tuple[Range, ...], list[Replacement]]) -> None:
    cut, replacements = case
    text = "abcdefghijklmnopqrstuvwxyz"[: cut[-1].end]
    gone = {at for one in replacements for at in range(one.start, one.end)}
    new = replaced(text, replacements)
    for old, place in zip(cut, moved(cut, replacements), strict=True):
        own = [text[at] for at in range(old.start, old.end) if at not in gone]
        assert [letter for letter in (place.of(new) if place else "") if letter.islower()] == own


@given(st.text("ab \n", max_size=30), st.lists(st.text("ab", min_size=1, max_size=3), min_size=1, max_size=3))
def test_a_redaction_says_what_it_replaces(text: str, strings: list[str]) -> None:
    eraser = Eraser.of(dict.fromkeys(strings, "[removed]"))
    assert replaced(text, eraser.replacements(text)) == eraser.text(text)


def test_many_ranges_and_replacements_take_little_time() -> None:
    ranges = [Range(at, at + 20) for at in range(0, 100_000, 20)]
    replacements = [Replacement(at + 5, at + 30, "X") for at in range(0, 99_900, 40)]
    begun = time.process_time()
    places = moved(ranges, replacements)
    assert time.process_time() - begun < 0.5
    assert is_partition(len(replaced("a" * 100_000, replacements)), [place for place in places if place])
