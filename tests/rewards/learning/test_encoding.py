from __future__ import annotations

from dataclasses import replace
from itertools import accumulate, pairwise
from typing import Any

import pytest

from rewards.learning.chat_templates import (
    CONVERSATION_TEMPLATE,
    PROMPT_TEMPLATE,
    UnrenderableConversation,
    template_hash,
)
from rewards.learning.data import Item, Turn
from rewards.learning.encoding import ChatFrame, Frame, pair_frame, truncation_of
from tests.rewards.learning.conftest import CHAT_TEMPLATE, make_tokenizer
from tests.rewards.learning.segment_builders import make_byte_frame


def make_item(prompt: str, response: str) -> Item:
    return Item("i", (Turn("user", prompt),), response)


def make_frame(kind: str, max_length: int) -> Frame:
    if kind == "pair":
        return pair_frame(make_tokenizer(pair=True), template=PROMPT_TEMPLATE, max_length=max_length)
    return ChatFrame(make_tokenizer(pair=False), CHAT_TEMPLATE, max_length)


def text_of(frame: Frame, ids: tuple[int, ...]) -> str:
    return "".join(frame.tokenizer.convert_ids_to_tokens(ids))


def test_an_encoder_reads_prompt_and_response_as_a_pair() -> None:
    frame = make_frame("pair", 64)
    encoded = frame.encode(make_item("hi", "yes"))
    assert text_of(frame, encoded.ids) == "[CLS]user: hi[SEP]yes[SEP]"
    assert text_of(frame, encoded.ids[encoded.response_start :]) == "yes[SEP]"


def test_a_decoder_reads_the_rendered_conversation() -> None:
    frame = make_frame("chat", 64)
    encoded = frame.encode(make_item("hi", "yes"))
    assert text_of(frame, encoded.ids) == "<s>[user] hi</s>[assistant] yes</s>"
    assert text_of(frame, encoded.ids[encoded.response_start :]) == "yes</s>"


@pytest.mark.parametrize("template", [CHAT_TEMPLATE, CONVERSATION_TEMPLATE])
def test_there_is_one_begin_and_one_end_of_text(template: str) -> None:
    frame = ChatFrame(make_tokenizer(pair=False), template, 64)
    ids = frame.encode(make_item("hi", "yes")).ids
    assert ids[0] == frame.tokenizer.bos_token_id
    assert ids.count(frame.tokenizer.bos_token_id) == 1
    assert ids[-1] == frame.tokenizer.eos_token_id != ids[-2]


@pytest.mark.parametrize("kind", ["pair", "chat"])
def test_a_long_prompt_loses_its_beginning_and_the_response_stays_whole(kind: str) -> None:
    frame = make_frame(kind, 40)
    encoded = frame.encode(make_item("A" * 50 + "Z", "the whole response"))
    text = text_of(frame, encoded.ids)
    assert len(encoded.ids) == 40
    assert "Z" in text
    assert text_of(frame, encoded.ids[encoded.response_start :]).startswith("the whole response")
    assert text.startswith(("[CLS]", "<s>"))
    assert encoded.prompt_cut > 0 == encoded.response_cut


@pytest.mark.parametrize("kind", ["pair", "chat"])
def test_a_response_beyond_the_limit_is_flagged(kind: str) -> None:
    frame = make_frame(kind, 20)
    encoded = frame.encode(make_item("hi", "x" * 100))
    assert len(encoded.ids) == 20
    assert encoded.response_cut > 0
    assert encoded.response_tokens >= 100
    assert text_of(frame, encoded.ids).endswith(("[SEP]", "</s>"))


@pytest.mark.parametrize("kind", ["pair", "chat"])
def test_an_empty_prompt_leaves_the_response_where_it_is(kind: str) -> None:
    encoded = make_frame(kind, 64).encode(make_item("", "yes"))
    assert encoded.response_cut == encoded.prompt_cut == 0


def test_truncation_is_counted() -> None:
    frame = make_frame("pair", 20)
    items = [make_item("hi", "ok"), make_item("h" * 30, "ok"), make_item("hi", "x" * 30)]
    counted = truncation_of([frame.encode(item) for item in items])
    assert (counted.items, counted.prompts_cut, counted.responses_cut) == (3, 2, 1)


def test_a_template_that_inserts_the_date_gets_a_frozen_one() -> None:
    template = "{{ date_string }}" + CHAT_TEMPLATE
    frame = ChatFrame(make_tokenizer(pair=False), template, 64)
    assert text_of(frame, frame.encode(make_item("hi", "yes")).ids).startswith("26 Jul 2024")


def test_a_template_that_refuses_the_turns_is_told_by_name() -> None:
    frame = ChatFrame(make_tokenizer(pair=False), "{{ raise_exception('roles must alternate') }}", 64)
    with pytest.raises(UnrenderableConversation, match="cannot render this conversation: roles must alternate"):
        frame.encode(make_item("hi", "yes"))


@pytest.mark.parametrize("response", ["<", "s", "\n", "e</s>", "", "assistant"])
def test_the_response_begins_where_it_begins_whatever_it_says(response: str) -> None:
    frame = make_frame("chat", 64)
    encoded = frame.encode(make_item("hi", response))
    assert text_of(frame, encoded.ids[: encoded.response_start]) == "<s>[user] hi</s>[assistant] "


def test_templates_are_told_apart_by_their_hash() -> None:
    assert template_hash(PROMPT_TEMPLATE) != template_hash(CONVERSATION_TEMPLATE)


def test_special_tokens_of_a_pair_are_those_of_its_tokenizer() -> None:
    frame: Any = make_frame("pair", 64)
    assert (frame.before, frame.between, frame.after) == ((2,), (3,), (3,))


# Segments --------------------------------------------------------------------------------------------------


def texts_of(frame: Frame, prompt: str, *segments: str) -> list[str]:
    """The text of the tokens that each segment of a response owns."""
    ends = list(accumulate(map(len, segments)))
    item = Item("i", (Turn("user", prompt),), "".join(segments), tuple(pairwise([0, *ends])))
    encoded = frame.encode(item)
    return [text_of(frame, encoded.ids[start:end]) for start, end in encoded.segments]


@pytest.mark.parametrize("kind", ["pair", "chat"])
def test_each_segment_owns_the_tokens_of_its_characters(kind: str) -> None:
    assert texts_of(make_frame(kind, 64), "hi", "One. ", "Two.") == ["One. ", "Two."]


@pytest.mark.parametrize("kind", ["pair", "chat"])
def test_segments_stay_where_they_are_when_the_prompt_is_cut(kind: str) -> None:
    assert texts_of(make_frame(kind, 40), "A" * 99, "One. ", "Two.") == ["One. ", "Two."]


@pytest.mark.parametrize("kind", ["pair", "chat"])
def test_a_segment_that_was_cut_away_owns_no_token(kind: str) -> None:
    first, second, third = texts_of(make_frame(kind, 20), "hi", "x" * 15, "y" * 15, "z" * 15)
    assert (first, set(second), third) == ("x" * 15, {"y"}, "")


def test_blanks_that_a_template_trims_move_no_segment() -> None:
    assert texts_of(make_frame("chat", 64), "hi", "  One. ", "Two. ") == ["One. ", "Two."]


def test_segments_that_a_template_rewrites_are_lost() -> None:
    template = CHAT_TEMPLATE.replace("| trim", "| replace('One', '1')")
    assert texts_of(ChatFrame(make_tokenizer(pair=False), template, 64), "hi", "One. ", "Two.") == ["", ""]


@pytest.mark.parametrize("kind", ["pair", "chat"])
def test_segments_of_chinese_and_emoji_own_their_code_points(kind: str) -> None:
    frame = make_byte_frame(kind)
    segments = ("好的。", "👍🏽é ", "終わり")
    item = Item("i", (Turn("user", "你好👋"),), "".join(segments), ((0, 3), (3, 7), (7, 10)))
    assert len(segments[1]) == 4  # the thumb, its colour, a letter and a blank
    encoded = frame.encode(item)
    owned = [frame.tokenizer.decode(encoded.ids[start:end]) for start, end in encoded.segments]
    assert owned == list(segments)


@pytest.mark.parametrize("kind", ["pair", "chat"])
def test_a_token_across_two_segments_is_found_by_tokenising_once(kind: str) -> None:
    frame = make_byte_frame(kind, [("b", "c"), ("bc", "d"), ("x", "y")])
    assert texts_of(frame, "hi", "ab", "cde", "wx", "yz") == ["a", "bcde", "wxy", "z"]


def test_segments_do_not_change_the_tokens() -> None:
    for frame in (make_frame("pair", 40), make_frame("chat", 40)):
        plain = make_item("hi" * 20, "One. Two.")
        encoded = frame.encode(replace(plain, segments=((0, 5), (5, 9))))
        assert replace(encoded, segments=()) == frame.encode(plain)
