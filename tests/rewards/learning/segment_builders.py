"""Plain builders of segmented responses: a segment with the mark # is a bad one, wherever it stands."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, models, pre_tokenizers
from tokenizers import decoders as token_decoders
from transformers import PreTrainedTokenizerFast

from rewards.learning.chat_templates import PROMPT_TEMPLATE
from rewards.learning.encoding import ChatFrame, Frame, PairFrame
from tests.rewards.learning.builders import ATTRIBUTES, Row, make_response, make_row, write_jsonl
from tests.rewards.learning.conftest import CHAT_TEMPLATE

ASPECTS = ("correctness", "clarity")
GOOD, BAD = ("ok ok. ", "so on. "), ("#### a. ", "b ####. ")


def make_byte_frame(kind: str, merges: Sequence[tuple[str, str]] = ()) -> Frame:
    """A tokenizer of bytes, as those of GPT and Llama 3: a Chinese character is three tokens, an emoji four.

    `merges` are pairs of tokens that it makes one, from the most to the least frequent.
    """
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    vocabulary = {
        token: number for number, token in enumerate(["[PAD]", "<s>", "</s>", *sorted(alphabet), *map("".join, merges)])
    }
    tokenizer = Tokenizer(models.BPE(vocabulary, [*merges]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = token_decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", pad_token="[PAD]"
    )
    if kind == "pair":
        return PairFrame(fast, PROMPT_TEMPLATE, 128, (1,), (2,), (2,))
    return ChatFrame(fast, CHAT_TEMPLATE, 128)


def make_segmented_response(name: str, texts: Sequence[str], scores: Sequence[Sequence[float | None]]) -> Row:
    ends = [len("".join(texts[: number + 1])) for number in range(len(texts))]
    ranges = [list(pair) for pair in zip([0, *ends], ends, strict=False)]
    return {
        **make_response(name, "".join(texts), {}),
        "segments": ranges,
        "segment_scores": [list(values) for values in scores],
    }


def make_segmented_rows(count: int, *, seed: int = 0, with_attributes: bool = True) -> list[Row]:
    """Two responses a task, of two or three segments, one of which is marked; without one, helpfulness is higher."""
    rng = random.Random(seed)
    rows = []
    for number in range(count):
        responses = []
        for side in "ab":
            size, marked = rng.choice([2, 3]), rng.random() < 0.8
            worst = rng.randrange(size) if marked else size
            texts = [rng.choice(BAD if place == worst else GOOD) for place in range(size)]
            scores = [
                [0.0 if place == worst else 4.0 - rng.choice([0, 1]) / 3, 4.0 - (place == worst)]
                for place in range(size)
            ]
            response = make_segmented_response(f"t{number}{side}", texts, scores)
            if with_attributes:
                response["scores"] = {"helpfulness": 1.0 if marked else 4.0, "verbosity": float(size)}
                response["labels"] = {key: round(value) for key, value in response["scores"].items()}
            responses.append(response)
        rows.append(make_row(number, responses=responses))
    return rows


def make_segmented_snapshot(
    directory: Path,
    *,
    train: Sequence[Row],
    validation: Sequence[Row],
    attributes: Sequence[str] = ATTRIBUTES,
    aspects: Sequence[str] = ASPECTS,
    **manifest: Any,
) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    files = {}
    for name, rows in (("train.jsonl", train), ("validation.jsonl", validation)):
        files[name] = hashlib.sha256(write_jsonl(directory / name, rows).read_bytes()).hexdigest()
    about = {"format": 1, "content_hash": "c0ffee", "attributes": list(attributes), "files": files, **manifest}
    named = {"aspects": list(aspects)} if aspects else {}
    (directory / "manifest.json").write_text(json.dumps(about | named), encoding="utf-8")
    return directory


def make_segmented_run(directory: Path, *, backbone: Path, rows: Sequence[Row], **config: Any) -> Path:
    """A directory that `train` can be called on; the last quarter of the rows is held out."""
    held_out = len(rows) // 4
    attributes = config.pop("attributes", ATTRIBUTES)
    snapshot = make_segmented_snapshot(
        directory / "snapshot", train=rows[:-held_out], validation=rows[-held_out:], attributes=attributes
    )
    small = {"batch_tokens": 256, "threads": 1, "cross_fit_minutes": 0, "precision": "float32"}
    run = directory / "run"
    run.mkdir(parents=True)
    given = {"snapshot": str(snapshot), "backbone": str(backbone), **small, **config}
    (run / "config.json").write_text(json.dumps(given), encoding="utf-8")
    return run
