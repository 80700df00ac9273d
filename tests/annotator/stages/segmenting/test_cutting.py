"""Texts are cut as a reader would cut them, and whatever they contain, the segments partition them."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from annotator.infrastructure.limits import LONGEST_CUT_TEXT, MOST_SEGMENTS
from annotator.stages.segmenting import Range, Unit, cut, is_partition
from annotator.stages.segmenting.cutting import WINDOW, _starts_in
from tests.annotator.stages.segmenting.texts_cut_by_hand import (
    CUT_WRONGLY,
    FROM_RESPONSES,
    LANGUAGES,
    MARK,
    MARKDOWN,
    PROSE,
    STEPS,
    read,
)

HOSTILE = ["a\n\n", "|\n", "\\[\n", "\\\\(", "`", "“", "$a ", "](x "]
"""Repeated, these are what takes some parsers quadratic time."""
MARKS = [
    "\n",
    "\n\n",
    "\r\n",
    "\r",
    "```",
    "$$",
    "\\[",
    "\\]",
    "# ",
    "- ",
    "1. ",
    "> ",
    "|",
    "---",
    "**",
    ". ",
    "Step 1: ",
]

texts = st.lists(st.one_of(st.sampled_from(MARKS), st.text(st.characters(), max_size=8)), max_size=30).map("".join)
"""Texts of any characters, lone surrogates included, with much of what blocks are made from."""


def marked(text: str, ranges: tuple[Range, ...]) -> str:
    return MARK.join(segment.of(text) for segment in ranges)


def cut_and_marked(examples: tuple[str, ...], *, unit: Unit = Unit.SENTENCE, language: str = "") -> list[str]:
    texts = [read(example)[0] for example in examples]
    return [marked(text, cut(text, unit, language=language)) for text in texts]


@pytest.mark.parametrize("kind", PROSE)
def test_sentences_are_cut_as_by_hand(kind: str) -> None:
    right = tuple(example for example in PROSE[kind] if example not in CUT_WRONGLY)
    assert cut_and_marked(right, language=LANGUAGES.get(kind, "")) == list(right)


def test_the_texts_that_the_library_cuts_wrongly_are_known() -> None:
    wrong = [
        example
        for kind, examples in PROSE.items()
        for example, done in zip(examples, cut_and_marked(examples, language=LANGUAGES.get(kind, "")), strict=True)
        if done != example
    ]
    assert wrong == list(CUT_WRONGLY)


@pytest.mark.parametrize("kind", FROM_RESPONSES)
def test_what_was_learnt_from_responses_is_kept(kind: str) -> None:
    assert cut_and_marked(FROM_RESPONSES[kind]) == list(FROM_RESPONSES[kind])


@pytest.mark.parametrize("kind", MARKDOWN)
def test_blocks_are_cut_as_by_hand(kind: str) -> None:
    assert cut_and_marked(MARKDOWN[kind]) == list(MARKDOWN[kind])


@pytest.mark.parametrize("kind", STEPS)
def test_steps_are_cut_as_by_hand(kind: str) -> None:
    assert cut_and_marked(STEPS[kind], unit=Unit.STEP) == list(STEPS[kind])


def test_a_text_is_one_segment_if_nothing_smaller_is_asked_for() -> None:
    assert cut("One. Two.", Unit.TEXT) == (Range(0, 9),)


def test_an_empty_text_has_no_segments() -> None:
    assert cut("") == ()


def test_the_subtag_of_a_language_does_not_matter() -> None:
    assert cut("Am 3. Oktober ist frei.", language="de-AT") == (Range(0, 23),)


def test_positions_count_characters_that_take_two_units_in_javascript() -> None:
    assert cut("😀 is a face. It smiles.") == (Range(0, 13), Range(13, 23))


def test_what_has_no_letter_or_digit_joins_the_segment_before() -> None:
    assert cut_and_marked(("It works. 🎉\n\n***\n\n¦Try it.",)) == ["It works. 🎉\n\n***\n\n¦Try it."]


def test_emphasis_stays_with_the_words_that_it_marks() -> None:
    examples = ("Stop. ¦**Never go on.** ¦*Why?* ¦It is late.", "**你好。**¦我很好。")
    assert cut_and_marked(examples) == list(examples)


def test_a_sentence_longer_than_the_window_is_not_cut() -> None:
    long = "Word, " * WINDOW + "end. "
    assert cut(long + "Short one.") == (Range(0, len(long)), Range(len(long), len(long) + 10))


def test_sentences_behind_the_first_window_are_found() -> None:
    sentence = "This one has e.g. forty-two characters. "
    assert [end - start for start, end in cut(sentence * 500)] == [len(sentence)] * 500


def test_no_break_spaces_do_no_harm() -> None:
    examples = ("Take plan B\xa0. ¦It works.", "5\xa0km are far. ¦5\xa0m are not.")
    assert cut_and_marked(examples) == list(examples)


def test_what_makes_the_library_panic_stays_uncut() -> None:
    assert _starts_in("Take plan B\xa0. It works.", language="en") == []


def test_a_text_beyond_the_limit_is_one_segment() -> None:
    assert cut("One. " * LONGEST_CUT_TEXT) == (Range(0, 5 * LONGEST_CUT_TEXT),)


def test_neighbours_are_joined_where_there_are_too_many_segments() -> None:
    ranges = cut("One.\n" * (MOST_SEGMENTS + 1))
    assert len(ranges) == MOST_SEGMENTS // 2 + 1
    assert ranges[0] == Range(0, 10)


@settings(max_examples=200, deadline=None)
@given(text=texts, unit=st.sampled_from(Unit))
def test_the_segments_of_any_text_partition_it(text: str, unit: Unit) -> None:
    assert is_partition(len(text), cut(text, unit))


@settings(max_examples=60, deadline=None)
@given(text=texts)
def test_no_segment_but_the_first_begins_with_a_line_break(text: str) -> None:
    assert not any(segment.of(text).startswith(("\r", "\n")) for segment in cut(text)[1:])


@settings(max_examples=60, deadline=None)
@given(code=st.text(max_size=60).filter(lambda code: "```" not in code), before=texts)
def test_a_fenced_block_is_never_cut(code: str, before: str) -> None:
    head = before.replace("`", "").replace("~", "").replace("$$", "").replace("\\[", "").replace(">", "") + "\n\n"
    text = f"{head}```\n{code}\n```\n\nThe end."
    inside = range(len(head) + 1, len(head) + 5 + len(code) + 3)
    assert not any(segment.start in inside for segment in cut(text))


@pytest.mark.parametrize("part", HOSTILE)
def test_four_times_the_text_takes_less_than_eight_times_the_time(part: str) -> None:
    def seconds(length: int) -> float:
        text = (part * length)[:length]
        begun = time.process_time()
        cut(text)
        return time.process_time() - begun

    # Quadratic time would be sixteen times as long. The shortest of some runs, as others use the processor too.
    assert min(seconds(20_000) for _ in range(2)) < 8 * min(seconds(5_000) for _ in range(3)) + 0.02


def test_a_formula_is_not_closed_far_below() -> None:
    examples = ("$$ is a variable.\n" + "¦It is a number.\n" * 100 + "¦It costs $$",)
    assert cut_and_marked(examples) == list(examples)
