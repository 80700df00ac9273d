"""Texts written to be read slowly are read as fast as any other."""

import re
import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewards.api.openrlhf import MOST_CHARACTERS, RewardRequestSerializer
from rewards.evaluation.chat_markup import conversation_of, item_of
from tests.refusals import refusal

HOSTILE: dict[str, Callable[[int], str]] = {
    "special tokens": lambda length: "<s>" * (length // 3) + "x",
    "special tokens apart": lambda length: "<s>\n" * (length // 4) + "x",
    "special tokens unclosed": lambda length: "<|" + "a" * length,
    "many unclosed": lambda length: "<｜" * (length // 2),
    "instructions": lambda length: "[INST]" * (length // 6),
    "instructions and one end": lambda length: "[INST]" * (length // 6) + "[/INST]" + "[INST]" * 1_000,
    "lines": lambda length: "Human: a" + "\n" * length + "\nAssistant:",
    "spaces": lambda length: "Human: a\n" + " " * length + "\nAssistant:",
    "names": lambda length: "Human: " + "\nAssistant: " * (length // 12),
    "systems": lambda length: "[INST]<<SYS>>" * (length // 13) + "[/INST]",
    "white space": lambda length: " \n\t" * (length // 3),
    "roles": lambda length: "<|im_start|>" * (length // 12),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_the_largest_hostile_text_is_read_within_a_second(name: str) -> None:
    text = HOSTILE[name](MOST_CHARACTERS)
    began = time.process_time()
    conversation_of(text)
    item_of(f"Why?{text}", "Why?")
    item_of(text + "x", text)
    assert time.process_time() - began < 1


def test_a_prompt_that_nearly_stands_in_its_query_is_looked_for_within_a_second() -> None:
    began = time.process_time()
    with refusal("not_its_prompt"):
        item_of("a" * MOST_CHARACTERS, "b" + "a" * (MOST_CHARACTERS // 2) + "b")
    assert time.process_time() - began < 1


@pytest.mark.parametrize("field", ["query", "prompts"])
def test_a_longer_query_is_refused(field: str) -> None:
    sent = {"query": ["a"], "prompts": ["a"]} | {field: ["a" * (MOST_CHARACTERS + 1)]}
    checked = RewardRequestSerializer(data=sent)
    assert not checked.is_valid()
    assert set(checked.errors) == {field}


# What the linear reading must not change: the patterns it stands for, on short texts -------------------------

SPECIAL = r"(?:<\|\w+\|>|<｜[^｜<>]+｜>|</?s>|<bos>|<eos>|<pad>|<end_of_turn>)"
ENDING = re.compile(rf"(?:{SPECIAL}\s*)+$")
INSTRUCTION = re.compile(r"\[INST\](.*?)\[/INST\]", re.DOTALL)
NAMED = re.compile(r"(?:^|\n)\s*(Human|User|Assistant|System): ?")
PIECES = [
    "<s>",
    "</s>",
    "<|x|>",
    "<|",
    "|>",
    "[INST]",
    "[/INST]",
    " ",
    "\n",
    "a",
    "Human: ",
    "Assistant:",
    "User:",
    "<",
]
texts = st.lists(st.sampled_from(PIECES), max_size=14).map("".join)


@given(texts)
def test_a_response_ends_where_its_special_tokens_begin(text: str) -> None:
    assert item_of(f"Why?{text}", "Why?")["response"] == ENDING.sub("", text)


@given(texts)
def test_instructions_are_those_that_are_closed(text: str) -> None:
    asked = [match[1].strip() for match in INSTRUCTION.finditer(text)]
    if asked:
        assert [turn["content"] for turn in conversation_of(text) if turn["role"] == "user"] == asked


@given(texts)
def test_named_turns_begin_on_lines_of_their_own(text: str) -> None:
    prompt = f"Human: {text}\nAssistant:"
    if not INSTRUCTION.search(prompt) and not re.search(r"<\|(system|user|assistant)\|>", prompt):
        named = [match[1] for match in NAMED.finditer(prompt)]
        roles = ["assistant" if name == "Assistant" else "user" for name in named]
        assert [turn["role"] for turn in conversation_of(prompt)] == roles
