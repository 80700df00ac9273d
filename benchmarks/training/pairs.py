"""Makes pairs of responses as tokens, and models with random weights to train on them."""

from __future__ import annotations

import gzip
import json
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoModelForSequenceClassification, LlamaConfig, PreTrainedTokenizerFast, Qwen3Config

from rewards.learning.data import Item, Turn
from rewards.learning.encoding import Encoded
from rewards.learning.model import Loaded

PAD, END = "<|pad|>", "<|end|>"
VOCABULARY = 8_192
# HelpSteer2 (arXiv 2406.08673, table 2): prompts of 713 characters, responses of 1,493 on the average; 4.3 a token.
PROMPT_TOKENS, RESPONSE_TOKENS, SPREAD = 166, 347, 0.7
SIZES: dict[str, dict[str, int]] = {
    "2m": {"hidden_size": 192, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 576},
    "10m": {"hidden_size": 256, "num_hidden_layers": 6, "num_attention_heads": 4, "intermediate_size": 768},
    "1b": {"hidden_size": 2048, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 6144},
    "8b": {"hidden_size": 4096, "num_hidden_layers": 36, "num_attention_heads": 32, "intermediate_size": 12288},
}


@dataclass(frozen=True)
class Pair:
    """Two continuations of one prompt, the better one first."""

    chosen: Encoded
    rejected: Encoded


def read_hh(path: Path) -> list[tuple[Item, Item]]:
    """Reads rows {prompt, chosen, rejected}, whose prompt is a transcript of "Human:" and "Assistant:" turns."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    items = []
    for row in rows:
        turns = tuple(_turns(row["prompt"]))
        items.append(
            (Item(f"{row['id']}+", turns, row["chosen"].strip()), Item(f"{row['id']}-", turns, row["rejected"].strip()))
        )
    return items


def _turns(transcript: str) -> Iterator[Turn]:
    parts = re.split(r"\n\n(Human|Assistant):", "\n\n" + transcript.strip())[1:]
    for speaker, text in zip(parts[::2], parts[1::2], strict=True):
        if text.strip():
            yield Turn("user" if speaker == "Human" else "assistant", text.strip())


def drawn(count: int, *, seed: int = 0, most: int = 1_000) -> list[Pair]:
    """Draws pairs of random tokens with about the lengths of HelpSteer2's prompts and responses.

    Lengths are log-normal. Their means are HelpSteer2's, the spread is our assumption.
    """
    dice = np.random.default_rng(seed)

    def length(mean: int) -> int:
        # A log-normal variable has the mean exp(mu + sigma^2 / 2).
        return int(np.clip(dice.lognormal(np.log(mean) - SPREAD**2 / 2, SPREAD), 8, most // 2))

    def tokens(mean: int) -> tuple[int, ...]:
        # From 10 on: the first ids are the tokenizer's special ones, such as padding.
        return tuple(dice.integers(10, VOCABULARY, size=length(mean)).tolist())

    pairs = []
    for _ in range(count):
        prompt = tokens(PROMPT_TOKENS)
        sides = [(*prompt, *tokens(RESPONSE_TOKENS)) for _ in range(2)]
        pairs.append(Pair(*(Encoded(ids, len(prompt), len(ids) - len(prompt), 0, 0) for ids in sides)))
    return pairs


def make_tokenizer(texts: Sequence[str]) -> Any:
    """Makes a tokenizer of byte pairs that are learnt from the texts."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=[PAD, END], initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token=PAD, eos_token=END)  # type: ignore[no-untyped-call]


def make_model(kind: str, size: str, tokenizer: Any, directory: Path) -> Path:
    """Writes a reward model of one output with random weights as a Hugging Face directory; returns the directory."""
    shape = SIZES[size]
    config = {"llama": LlamaConfig, "qwen3": Qwen3Config}[kind](
        **shape,
        num_key_value_heads=shape["num_attention_heads"] // 2,
        head_dim=shape["hidden_size"] // shape["num_attention_heads"],
        vocab_size=VOCABULARY,
        max_position_embeddings=2_048,
        num_labels=1,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
    )
    torch.manual_seed(0)  # every trainer and every run begins with the same weights
    network: Any = AutoModelForSequenceClassification.from_config(config)  # type: ignore[no-untyped-call]
    network.save_pretrained(directory)
    tokenizer.save_pretrained(directory)
    return directory


def encode(items: Sequence[tuple[Item, Item]], loaded: Loaded) -> list[Pair]:
    return [Pair(loaded.frame.encode(good), loaded.frame.encode(bad)) for good, bad in items]


def shuffled(values: Sequence[Any], *, seed: int = 0) -> list[Any]:
    return random.Random(seed).sample(list(values), len(values))


def tokens_of(pairs: Sequence[Pair]) -> int:
    """Counts the tokens of both responses, each with its prompt: what a trainer without packing or sharing reads."""
    return sum(len(side.ids) for pair in pairs for side in (pair.chosen, pair.rejected))
