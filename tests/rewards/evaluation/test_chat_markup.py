"""Rendered prompts of every known format, read back to the conversation they came from."""

from collections.abc import Callable

import pytest

from rewards.evaluation.chat_markup import Turns, conversation_of, item_of
from tests.refusals import refusal

SYSTEM, ASKED = {"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why?\nTell me: user or not?"}
TALK: Turns = [SYSTEM, ASKED, {"role": "assistant", "content": "Because."}, {"role": "user", "content": "Why so?"}]


def framed(opening: str, closing: str, begin: str = "", **names: str) -> Callable[[Turns], str]:
    """A template that puts each turn between an opening, which names the role, and a closing."""

    def render(turns: Turns) -> str:
        named = [(names.get(turn["role"], turn["role"]), turn["content"]) for turn in turns]
        text = "".join(f"{opening.format(role)}{content}{closing}" for role, content in named)
        return begin + text + opening.format(names.get("assistant", "assistant"))

    return render


def instructions(turns: Turns) -> str:
    """Llama 2's."""
    system, first, answer, last = (turn["content"] for turn in turns)
    return f"<s>[INST] <<SYS>>\n{system}\n<</SYS>>\n\n{first} [/INST] {answer} </s><s>[INST] {last} [/INST]"


FORMATS: dict[str, Callable[[Turns], str]] = {
    "chatml": framed("<|im_start|>{}\n", "<|im_end|>\n"),
    "llama 3": framed("<|start_header_id|>{}<|end_header_id|>\n\n", "<|eot_id|>", "<|begin_of_text|>"),
    "gemma": framed("<start_of_turn>{}\n", "<end_of_turn>\n", "<bos>", assistant="model"),
    "phi": framed("<|{}|>\n", "<|end|>\n"),
    "zephyr": framed("<|{}|>\n", "</s>\n"),
    "llama 2": instructions,
    "named": lambda turns: framed("\n\n{}: ", "", user="Human", assistant="Assistant", system="System")(turns[1:]),
}


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(
    "ending", ["", "<|im_end|>", "<|eot_id|>", "</s>", "<end_of_turn>\n", "<|im_end|><|endoftext|>"]
)
def test_a_rendered_prompt_is_read_back(name: str, ending: str) -> None:
    prompt = FORMATS[name](TALK)
    expected = TALK[1:] if name == "named" else TALK
    assert item_of(f"{prompt}So it is.\n{ending}", prompt) == {"conversation": expected, "response": "So it is.\n"}


def test_a_plain_prompt_is_the_user_s() -> None:
    item = item_of("<s>Why? Because.</s>", "<s>Why?")
    assert item == {"conversation": [{"role": "user", "content": "Why?"}], "response": " Because."}


def test_a_begun_answer_belongs_to_the_response() -> None:
    prompt = FORMATS["chatml"]([ASKED]) + "<think>\n"
    assert item_of(f"{prompt}Hm.</think>Yes.", prompt)["response"] == "<think>\nHm.</think>Yes."


def test_an_empty_response_is_empty() -> None:
    prompt = FORMATS["chatml"](TALK)
    assert item_of(f"{prompt}<|im_end|>", prompt)["response"] == ""


def test_the_tokenizer_may_have_put_its_begin_before_the_prompt() -> None:
    prompt = FORMATS["chatml"](TALK)
    assert item_of(f"<s> {prompt}Yes.", prompt)["response"] == "Yes."


def test_a_prompt_whose_beginning_was_cut_is_found_by_its_end() -> None:
    prompt = FORMATS["chatml"]([SYSTEM, {"role": "user", "content": "word " * 1000 + "Why?"}])
    assert item_of(f"{prompt[-1200:]}Yes.<|im_end|>", prompt)["response"] == "Yes."


def test_another_s_prompt_is_refused() -> None:
    with refusal("not_its_prompt"):
        item_of("Why? Because.", "How?")


def test_a_role_that_we_do_not_know_is_the_user_s() -> None:
    text = "<|im_start|>tool\n42<|im_end|>\n"
    assert conversation_of(text) == [{"role": "user", "content": "42"}]
