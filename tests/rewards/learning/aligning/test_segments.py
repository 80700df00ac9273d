"""Which segment owns which token, and the known defects of code elsewhere."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from rewards.learning.aligning.judged_rows import ScoredSpan
from rewards.learning.aligning.scored_segments import (
    RewrittenResponse,
    columns,
    loss_weight,
    normalised,
    owners,
    rewards_of,
)
from rewards.learning.chat_templates import UnrenderableConversation
from rewards.learning.data import Item
from rewards.learning.encoding import ChatFrame, Located
from tests.rewards.learning.aligning.builders import (
    TEMPLATE,
    learnt_text,
    make_frame,
    make_judged_row,
    make_units,
    turns,
)


def cut(*bounds: int) -> list[ScoredSpan]:
    return [ScoredSpan(start, end, {"a": 1.0}) for start, end in pairwise(bounds)]


def owned(frame: ChatFrame, response: str, segments: list[ScoredSpan], *prompt: str) -> dict[int, str]:
    """The text that each segment's tokens hold together."""
    located = frame.locate(Item("", turns(*(prompt or ("Why?",))), response))
    ids = located.encoded.ids[located.encoded.response_start :]
    tokens = frame.tokenizer.convert_ids_to_tokens(ids)
    texts: dict[int, str] = {}
    for number, token in zip(owners(located, response, segments), tokens, strict=True):
        texts[number] = texts.get(number, "") + token
    return texts


def spans_of(*spans: tuple[int, int], text: str) -> Located:
    located = make_frame().locate(Item("", turns("a"), "b"))
    return Located(located.encoded, spans, text)


def bpe_frame(text: str) -> ChatFrame:
    """A tokenizer that merges letters over what a reader would cut."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=["<s>", "</s>"], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )  # fmt: skip
    tokenizer.train_from_iterator([text] * 3, trainer)
    fast: Any = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>")  # type: ignore[no-untyped-call]
    return ChatFrame(fast, TEMPLATE, 512)


def test_each_segment_owns_its_characters_and_the_last_one_what_closes_the_turn() -> None:
    assert owned(make_frame(), "Good. Bad.", cut(0, 6, 10)) == {0: "Good. ", 1: "Bad.</s>"}


def test_offsets_do_not_forget_the_prompt() -> None:
    """Counted from the first token of the conversation, the segments of a long prompt would own prompt tokens only."""
    short, long = (owned(make_frame(), "Good. Bad.", cut(0, 6, 10), prompt) for prompt in ("a", "a long prompt " * 9))
    assert short == long


def test_offsets_do_not_forget_earlier_turns_that_say_the_same() -> None:
    texts = owned(make_frame(), "Good. Bad.", cut(0, 6, 10), "Hm?", "Good. Bad.", "Again?")
    assert texts == {0: "Good. ", 1: "Bad.</s>"}


def test_a_token_across_a_boundary_goes_to_the_larger_overlap() -> None:
    located = spans_of((0, 4), (4, 8), text="abcdefgh")
    assert owners(located, "abcdefgh", cut(0, 5, 8)) == [0, 1]
    assert owners(located, "abcdefgh", cut(0, 7, 8)) == [0, 0]


def test_a_token_with_equal_overlaps_goes_to_the_first() -> None:
    assert owners(spans_of((0, 2), text="ab"), "ab", cut(0, 1, 2)) == [0]


def test_a_token_over_three_segments_goes_to_the_largest() -> None:
    assert owners(spans_of((0, 6), text="abcdef"), "abcdef", cut(0, 1, 5, 6)) == [1]


@pytest.mark.parametrize("seed", range(5))
def test_owners_are_those_that_counting_characters_finds(seed: int) -> None:
    rng = random.Random(seed)
    text = "".join(rng.choice("abc .") for _ in range(60))
    segments = cut(0, *sorted(rng.sample(range(1, 60), 7)), 60)
    ends = sorted(rng.sample(range(1, 60), 12))
    spans = list(zip([0, *ends], [*ends, 60], strict=True))
    counted = [
        max(range(8), key=lambda k: (sum(segments[k].start <= place < segments[k].end for place in range(*span)), -k))
        for span in spans
    ]
    assert owners(spans_of(*spans, text=text), text, segments) == counted


def test_segments_are_not_tokenised_apart() -> None:
    """Apart, the second one would begin with other tokens than it has in the whole text."""
    frame = bpe_frame("one two three")
    response = "one two three"
    located = frame.locate(Item("", turns("Why?"), response))
    apart = [len(frame.tokenizer(part, add_special_tokens=False)["input_ids"]) for part in ("one tw", "o three")]
    whole = len(located.encoded.ids) - located.encoded.response_start - 1  # without what closes the turn
    assert sum(apart) != whole
    assert len(owners(located, response, cut(0, 6, 13))) == whole + 1


def test_a_segment_that_owns_no_token_is_dropped_with_its_weight(tmp_path: Path) -> None:
    frame = bpe_frame("yes. yes. no.")
    row = make_judged_row(0, [True, False], [False])
    row["chosen"], row["chosen_segments"] = (
        "yes. yes. no.",
        [
            {"start": start, "end": end, "scores": {"correctness": score, "clarity": score}}
            for start, end, score in ((0, 2, 4), (2, 3, 3), (3, 13, 1))
        ],
    )
    (unit,) = make_units(tmp_path, frame, [row])
    assert unit.chosen.dropped + len(unit.chosen.weights) == 3
    assert unit.chosen.dropped > 0
    assert set(unit.chosen.columns) == set(range(len(unit.chosen.weights)))


def test_weights_do_not_survive_truncation(tmp_path: Path) -> None:
    row = make_judged_row(0, [True, False, True], [False, False])
    (unit,) = make_units(tmp_path, make_frame(max_length=8), [row])
    # Seven characters after the token of the beginning, of which the last one only closes the turn.
    assert learnt_text(make_frame(), unit) == "yes. n"
    assert unit.chosen.weights == (3.5, 0.5)
    assert unit.chosen.dropped == 1
    assert unit.chosen.columns == (0, 0, 0, 0, 0, 1)


def test_labels_and_segments_are_shifted_together(tmp_path: Path) -> None:
    """The token that a column stands for is the predicted one, not the one before it."""
    (unit,) = make_units(tmp_path, make_frame(), [make_judged_row(0, [True, False], [False])])
    assert learnt_text(make_frame(), unit) == "yes. no.</s>"
    assert unit.chosen.columns == (0,) * 5 + (1,) * 4


def test_a_template_that_trims_moves_no_segment() -> None:
    trimming = TEMPLATE.replace("message['content']", "message['content'] | trim")
    assert owned(make_frame(template=trimming), "  Good. Bad. ", cut(0, 8, 13)) == {0: "Good. ", 1: "Bad.</s>"}


def test_a_template_that_rewrites_responses_is_refused() -> None:
    upper = TEMPLATE.replace("message['content']", "message['content'] | upper")
    with pytest.raises(RewrittenResponse, match="leaves a message's content as it is"):
        owned(make_frame(template=upper), "Good. Bad.", cut(0, 6, 10))


def test_a_conversation_that_the_template_refuses_is_said_with_its_line(tmp_path: Path) -> None:
    strict = "{{ raise_exception('only users here') }}"
    with pytest.raises(UnrenderableConversation, match=r"^rows.jsonl, line 1: .*only users here"):
        make_units(tmp_path, make_frame(template=strict), [make_judged_row(0, [True], [False])])


def test_the_reward_of_a_segment_is_the_weighted_mean_of_its_scores() -> None:
    weights = normalised({"a": 3.0, "b": 1.0}, ["a", "b"])
    assert weights == {"a": 0.75, "b": 0.25}
    assert rewards_of([ScoredSpan(0, 1, {"a": 4.0, "b": 0.0})], weights) == [3.0]


def test_without_weights_all_aspects_count_alike() -> None:
    assert normalised({}, ["a", "b"]) == {"a": 0.5, "b": 0.5}


def test_the_best_chosen_segments_stand_first_and_the_worst_rejected_ones() -> None:
    rewards = [1.0, 4.0, 0.0, 4.0]
    assert columns([0, 1, 2, 3], rewards, chosen=True) == {1: 0, 3: 1, 0: 2, 2: 3}
    assert columns([0, 1, 2, 3], rewards, chosen=False) == {2: 0, 0: 1, 1: 2, 3: 3}


def test_inverted_weights_push_the_worst_rejected_segment_down_most() -> None:
    weight = {
        name: [loss_weight(r, chosen=False, rejected_weight=name, levels=5) for r in (0.0, 1.5, 4.0)]
        for name in ("inverted", "identity")
    }
    assert weight == {"inverted": [4.0, 2.5, 0.0], "identity": [0.0, 1.5, 4.0]}


def test_chosen_weights_are_never_inverted() -> None:
    assert loss_weight(4.0, chosen=True, rejected_weight="inverted", levels=5) == 4.0


def test_a_row_s_weights_follow_the_aspect_weights(tmp_path: Path) -> None:
    row = make_judged_row(0, [True], [False])
    (unit,) = make_units(tmp_path, make_frame(), [row], aspect_weights={"correctness": 1.0})
    assert unit.chosen.weights == (4.0,)
    assert unit.rejected is not None
    assert unit.rejected.weights == (4.0,)


def test_methods_without_segments_have_one_of_weight_1(tmp_path: Path) -> None:
    (unit,) = make_units(tmp_path, make_frame(), [make_judged_row(0, [True, False], [False])], method="dpo")
    assert unit.chosen.weights == (1.0,)
    assert set(unit.chosen.columns) == {0}


def test_a_cut_response_does_not_teach_to_end(tmp_path: Path) -> None:
    (unit,) = make_units(tmp_path, make_frame(max_length=8), [make_judged_row(0, [True] * 4, [False])], method="sft")
    assert "</s>" not in learnt_text(make_frame(), unit)
