"""A synthetic world: responses are sentences about things, some sentences are true, and a program can tell which.

A prompt names some things. A response has a sentence for each: "otter weighs 7 ." is right if that is the otter's
weight, and unclear with a filler before it ("well , otter weighs 7 ."). So each response has good and bad segments, on
two aspects, and the better response of a pair only has more good ones.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

THINGS = (
    *("otter", "maple", "cobalt", "lemon", "falcon", "granite", "violet", "walnut", "badger", "copper", "clover"),
    *("magnet", "heron", "juniper", "marble", "pepper", "raven", "silver", "thistle", "velvet", "willow", "amber"),
    *("basil", "cedar"),
)
WEIGHTS = [str(number) for number in range(8)]
FILLERS = ("well ,", "um ,")
ASPECTS = {"correctness": 0.7, "clarity": 0.3}
TRUE_SHARE, FILLER_SHARE = 0.5, 0.3
"""How often the untrained writer is right, and how often it is unclear."""
NAMED = 4
"""The things that a prompt names."""
SPECIAL = ["<pad>", "<unk>", "<s>", "</s>", "<user>", "<assistant>"]
TEMPLATE = (
    "{{ bos_token }}{% for message in messages %} <{{ message['role'] }}> {{ message['content'] }}"
    "{% if message['role'] == 'assistant' %} {{ eos_token }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %} <assistant> {% endif %}"
)
Row = dict[str, Any]


@dataclass(frozen=True)
class Sentence:
    """One segment: its text, and whether it is right and clear."""

    text: str
    right: bool
    clear: bool

    @property
    def scores(self) -> dict[str, int]:
        return {"correctness": 4 if self.right else 0, "clarity": 4 if self.clear else 1}

    @property
    def quality(self) -> float:
        """The weighted scores, from 0 to 1."""
        return sum(weight * self.scores[name] for name, weight in ASPECTS.items()) / 4


@dataclass(frozen=True)
class World:
    """What things weigh in the world of a seed."""

    truth: dict[str, str]

    def write(self, things: Sequence[str], dice: random.Random) -> list[Sentence]:
        """Returns a response of the untrained writer."""
        return [self._sentence(thing, dice) for thing in things]

    def _sentence(self, thing: str, dice: random.Random) -> Sentence:
        right, clear = dice.random() < TRUE_SHARE, dice.random() >= FILLER_SHARE
        weight = self.truth[thing] if right else dice.choice([w for w in WEIGHTS if w != self.truth[thing]])
        filler = "" if clear else f"{dice.choice(FILLERS)} "
        return Sentence(f"{filler}{thing} weighs {weight} .", right, clear)

    def verdict(self, prompt: str, response: str) -> dict[str, float]:
        """Returns the shares of the things that the prompt names of which the response says what is right, and clearly.

        A thing that is left out, or named in another order or form, counts as wrong and unclear.
        """
        sentences = [part.split() for part in response.split(".")]
        right = clear = 0
        things = prompt.split()
        for place, thing in enumerate(things):
            words = sentences[place] if place < len(sentences) else []
            is_clear = len(words) == 3
            core = words[-3:] if is_clear or " ".join(words[:-3]) in FILLERS else []
            stated = core[:2] == [thing, "weighs"]
            right += stated and core[2] == self.truth[thing]
            clear += stated and is_clear
        shares = {"correctness": right / len(things), "clarity": clear / len(things)}
        quality = ASPECTS["correctness"] * shares["correctness"] + ASPECTS["clarity"] * (1 + 3 * shares["clarity"]) / 4
        return {**shares, "quality": quality}


def make_world(seed: int) -> World:
    dice = random.Random(f"world {seed}")
    return World({thing: dice.choice(WEIGHTS) for thing in THINGS})


def corpus(world: World, count: int, *, seed: int, without: Sequence[Row] = ()) -> list[Row]:
    """Returns what the untrained writer writes of other prompts than those rows have, to make a policy of."""
    dice = random.Random(f"corpus {seed}")
    return [_row(things, chosen=world.write(things, dice)) for things in _prompts(dice, count, without)]


def comparisons(world: World, count: int, *, seed: int, without: Sequence[Row] = ()) -> list[Row]:
    """Returns pairs of the writer's responses to other prompts than those rows have, the better one chosen.

    Each segment has its scores.
    """
    dice, rows = random.Random(f"pairs {seed}"), []
    for things in _prompts(dice, count, without):
        pair = [world.write(things, dice) for _ in range(2)]
        while quality(pair[0]) == quality(pair[1]):
            pair = [world.write(things, dice) for _ in range(2)]
        better, worse = sorted(pair, key=quality, reverse=True)
        rows.append(_row(things, chosen=better, rejected=worse))
    return rows


def quality(sentences: Sequence[Sentence]) -> float:
    return sum(sentence.quality for sentence in sentences) / len(sentences)


def _prompts(dice: random.Random, count: int, without: Sequence[Row]) -> list[list[str]]:
    taken = {row["conversation"][0]["content"] for row in without}
    prompts: list[list[str]] = []
    while len(prompts) < count:
        things = dice.sample(THINGS, NAMED)
        if " ".join(things) not in taken:
            prompts.append(things)
    return prompts


def _row(things: Sequence[str], **sides: Sequence[Sentence]) -> Row:
    row: Row = {"conversation": [{"role": "user", "content": " ".join(things)}]}
    for side, sentences in sides.items():
        texts = [sentence.text for sentence in sentences]
        row[side] = " ".join(texts)
        starts = [sum(map(len, texts[:place])) + place for place in range(len(texts))]
        row[f"{side}_segments"] = [
            {"start": start, "end": start + len(sentence.text), "scores": sentence.scores}
            for start, sentence in zip(starts, sentences, strict=True)
        ]
    # SteerLM's levels: the mean of the segments, rounded.
    for name, side in (("attributes", "chosen"), ("rejected_attributes", "rejected")):
        if side in sides:
            row[name] = {
                aspect: round(sum(s.scores[aspect] for s in sides[side]) / len(sides[side])) for aspect in ASPECTS
            }
    return row


def make_policy(directory: Path, *, seed: int) -> Path:
    """Writes a small language model with random weights, for which a word is a token."""
    steering = [*(f"{name}:" for name in ASPECTS), *(f"{level}," for level in range(5))]
    words = [*SPECIAL, *THINGS, *WEIGHTS, "weighs", ".", ",", "well", "um", *steering]
    tokenizer = Tokenizer(models.WordLevel({word: place for place, word in enumerate(words)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    fast: Any = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer, pad_token="<pad>", unk_token="<unk>", bos_token="<s>", eos_token="</s>"
    )
    fast.chat_template = TEMPLATE
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(words), hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128,
        max_position_embeddings=128, bos_token_id=2, eos_token_id=3, pad_token_id=0,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(directory)
    fast.save_pretrained(directory)
    return directory
