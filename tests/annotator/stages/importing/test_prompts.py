"""One string and many turns, each way exactly."""

from hypothesis import given
from hypothesis import strategies as st

from annotator.models.splits import prompt_hash
from annotator.stages.importing.conversations import Message, content_hash, messages_from_prompt, prompt_from_messages

MARKS = ["\n<extra_id_1>User\n", "\n<extra_id_1>Assistant\n", "\n<extra_id_1>System\n", "<extra_id_0>System\n", "\n"]
prompts = st.lists(st.sampled_from(MARKS) | st.text(max_size=5)).map("".join)
contents = st.text(min_size=1).filter(lambda text: "<extra_id_" not in text)
turns = st.lists(st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant", "system"]), "content": contents}))
conversations = st.builds(lambda earlier, last: [*earlier, {"role": "user", "content": last}], turns, contents)


def user(content: str) -> Message:
    return {"role": "user", "content": content}


def assistant(content: str) -> Message:
    return {"role": "assistant", "content": content}


def test_a_plain_prompt_is_one_turn() -> None:
    assert messages_from_prompt("c#") == [user("c#")]


def test_marks_part_the_turns() -> None:
    prompt = "Hi\n<extra_id_1>Assistant\nHello\n\nthere\n<extra_id_1>User\nBye\n"
    assert messages_from_prompt(prompt) == [user("Hi"), assistant("Hello\n\nthere"), user("Bye\n")]


def test_a_mark_inside_a_line_is_text() -> None:
    assert messages_from_prompt("say <extra_id_1>User\nnow") == [user("say <extra_id_1>User\nnow")]


def test_a_system_turn_stands_first() -> None:
    prompt = "<extra_id_0>System\nBe brief.\n<extra_id_1>User\nHi"
    assert messages_from_prompt(prompt) == [{"role": "system", "content": "Be brief."}, user("Hi")]


def test_a_conversation_may_begin_with_the_assistant() -> None:
    messages = [assistant("What now?"), user("Hi")]
    assert messages_from_prompt(prompt_from_messages(messages)) == messages


@given(prompts)
def test_every_prompt_comes_back(prompt: str) -> None:
    assert prompt_from_messages(messages_from_prompt(prompt)) == prompt


@given(conversations)
def test_every_conversation_comes_back(messages: list[Message]) -> None:
    assert messages_from_prompt(prompt_from_messages(messages)) == messages


def test_a_prompt_has_one_hash_whatever_its_file() -> None:
    as_file = [{"content": "Hi", "role": "user"}]
    assert prompt_hash(as_file) == prompt_hash(messages_from_prompt("Hi"))


def test_the_hash_of_a_prompt_never_changes() -> None:
    """Validation prompts would wander into the training set otherwise."""
    assert prompt_hash([user("Grüße\u2028")]).startswith("0e33dde19b81")


def test_the_order_of_responses_belongs_to_the_content() -> None:
    assert content_hash("p", ["a", "b"]) != content_hash("p", ["b", "a"])
