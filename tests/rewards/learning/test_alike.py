"""Pairs whose responses are the same tokens are counted and said; nobody learns from them or is judged by them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rewards.learning.aligning.align import align
from rewards.learning.aligning.judged_rows import NoRows
from rewards.learning.alike import alike_of, length_apart, sentences, with_alike
from rewards.learning.chat_templates import PROMPT_TEMPLATE
from rewards.learning.data import Item, Response, Task, Turn
from rewards.learning.encoding import ChatFrame, Frame, pair_frame
from rewards.learning.evaluate import measure, prediction_rows
from rewards.learning.model import DECODER
from rewards.learning.model_files import RIDGE, Manifest
from rewards.learning.pairs import better
from rewards.learning.splits import NothingApart
from rewards.learning.train import train
from tests.rewards.learning.aligning.builders import make_alignment
from tests.rewards.learning.builders import Row, make_response, make_row, make_run, make_snapshot, read_json
from tests.rewards.learning.chat_shapes import CHATML, chat_frame
from tests.rewards.learning.conftest import make_tokenizer

LONG = "word " * 12
"""60 characters, each a token of the tests' tokenizers: two responses that begin so are cut to the same."""
REWARD = {"helpfulness": 1.0}
MANIFEST = Manifest(RIDGE, tuple(REWARD), REWARD, (2.0,), DECODER, "none", "", "", 64, "c0ffee", {})
HIDING = CHATML.template.replace("message.content", "message.content.split('</think>')[-1]")


def make_task(*texts: str, preference: int = 1) -> Task:
    responses = tuple(Response(str(place), text, {}, {}, ()) for place, text in enumerate(texts))
    return Task("t", "h", (Turn("user", "Which?"),), responses, preference)


def make_frame(kind: str, max_length: int) -> Frame:
    if kind == "pair":
        return pair_frame(make_tokenizer(pair=True), template=PROMPT_TEMPLATE, max_length=max_length)
    return chat_frame(CHATML, max_length)


def read(frame: Frame, *tasks: Task) -> list[Task]:
    items = [Item("", task.conversation, response.text) for task in tasks for response in task.responses]
    return with_alike(tasks, map(frame.encode, items))


@pytest.mark.parametrize("kind", ["pair", "chat"])
def test_a_pair_that_is_the_same_once_cut_says_which_limit_keeps_it_apart(kind: str) -> None:
    frame = make_frame(kind, 40)
    (task,) = read(frame, make_task(LONG + "yes", LONG + "no"))
    assert list(better(task, REWARD)) == []
    alike = alike_of([task], frame, REWARD, most=0)
    assert (alike.pairs, alike.cut, alike.hidden, alike.left_out) == (1, 1, 0, 1)
    enough, too_few = (replace(frame, max_length=alike.apart_at - less) for less in (0, 1))
    assert [len(list(better(read(one, task)[0], REWARD))) for one in (enough, too_few)] == [1, 0]
    assert sentences(alike) == [
        f"1 of 1 pairs are the same once cut to 40 tokens; a max_length of {alike.apart_at} would keep them apart"
    ]
    limited = replace(alike, most=45)
    assert sentences(limited)[0].endswith("but the language model reads at most 45")


def test_what_a_template_hides_is_said_apart() -> None:
    frame = ChatFrame(chat_frame(CHATML).tokenizer, HIDING, 4_096)
    (task,) = read(frame, make_task("<think>a</think>yes", "<think>b</think>yes"))
    alike = alike_of([task], frame, REWARD, most=0)
    assert (alike.cut, alike.hidden, alike.apart_at) == (0, 1, 0)
    assert "the chat template or the tokenizer drops what differs" in sentences(alike)[0]


def test_the_same_text_twice_is_never_compared() -> None:
    task = make_task("Seven.", "Seven.", "Nine.", preference=0)
    task = replace(task, pairs=((0, 1), (0, 2)))
    assert list(better(task, REWARD)) == [(0, 2, 1.0)]
    alike = alike_of(read(chat_frame(CHATML), task), chat_frame(CHATML), REWARD, most=0)
    assert (alike.pairs, alike.same_text) == (2, 1)
    assert sentences(alike) == ["1 of 2 pairs have the same text twice"]


def test_pairs_that_differ_are_left_alone() -> None:
    task = make_task("yes", "no")
    assert read(chat_frame(CHATML), task) == [task]
    assert length_apart(chat_frame(CHATML), *(Item("", task.conversation, "yes") for _ in range(2))) == 0


# Runs ------------------------------------------------------------------------------------------------------


def preferred(number: int, first: str, second: str) -> Row:
    row = make_row(
        number, responses=[make_response(f"{number}{n}", text, {}) for n, text in enumerate((first, second))]
    )
    return {**row, "preference": -1}


def run_of(directory: Path, backbone: Path, rows: Sequence[Row], **config: Any) -> Path:
    run = make_run(directory, backbone=backbone, epochs=0, **config)
    make_snapshot(directory / "snapshot", train=rows[: len(rows) // 2], validation=rows[len(rows) // 2 :])
    return run


def test_a_run_learns_from_no_such_pair_and_is_judged_by_none(decoder_directory: Path, tmp_path: Path) -> None:
    alike = [preferred(number, LONG + "yes", LONG + "no") for number in range(6)]
    told = [preferred(number, "good", "bad") for number in range(6, 12)]
    rows = [row for both in zip(told, alike, strict=True) for row in both]
    run = run_of(tmp_path, decoder_directory, rows, max_length=40, stages=["bradley_terry"])
    train(run)
    metrics = read_json(run / "metrics.json")
    counts = [metrics["data"][part] for part in ("fit", "dev", "validation")]
    assert sum(part["alike"]["cut"] for part in counts) == 6
    assert sum(part["pairs"] for part in counts) == 6
    assert counts[2]["alike"]["apart_at"] > 40
    assert metrics["candidate"]["pairwise"]["pairs"] == counts[2]["pairs"] == 3
    predictions = [json.loads(line) for line in (run / "predictions.jsonl").read_text().splitlines()]
    assert [row["id"] for row in predictions if row.get("same_as")] == [
        response["id"] for row in rows[6:] if row in alike for response in row["responses"]
    ]


def test_a_run_without_any_other_pair_is_refused_with_the_limit_that_would_help(
    decoder_directory: Path, tmp_path: Path
) -> None:
    rows = [preferred(number, LONG + "yes", LONG + "no") for number in range(24)]
    run = run_of(tmp_path, decoder_directory, rows, max_length=40, stages=["bradley_terry"])
    with pytest.raises(NothingApart, match=r"(\d+) of \1 pairs are the same once cut to 40 tokens; a max_length of"):
        train(run)


def test_an_evaluation_leaves_them_out() -> None:
    frame = chat_frame(CHATML, 40)
    tasks = read(frame, make_task(LONG + "yes", LONG + "no", preference=-1), make_task("yes", "no", preference=-1))
    measured = measure(tasks, np.zeros((4, 1)), MANIFEST)
    assert measured["pairwise"]["pairs"] == 1
    rows = list(prediction_rows(tasks, np.zeros((4, 1)), MANIFEST))
    assert [row.get("same_as") for row in rows] == [["1"], ["0"], None, None]


@pytest.mark.parametrize("method", ["dpo", "sft"])
def test_an_alignment_compares_no_such_pair(method: str, decoder_directory: Path, tmp_path: Path) -> None:
    def row(number: int, chosen: str, rejected: str) -> Row:
        turns = [{"role": "user", "content": f"q{number}"}]
        return {"conversation": turns, "chosen": chosen, "rejected": rejected}

    alike = [row(number, LONG + "yes", LONG + "no") for number in range(4)]
    told = [row(number, "good", "bad") for number in range(4, 8)]
    run = make_alignment(tmp_path / "run", decoder_directory, method, rows=[*alike, *told], max_length=40, epochs=1)
    align(run)
    metrics = read_json(run / "metrics.json")
    parts = metrics["data"]
    assert sum(part["alike"]["cut"] for part in parts.values()) == 4
    assert metrics["train"]["pairs"] + metrics["held_out"].get("pairs", 0) == 4
    assert metrics["train"]["examples"] + metrics["held_out"].get("examples", 0) == (4 if method == "dpo" else 8)


def test_an_alignment_by_such_pairs_alone_is_refused(decoder_directory: Path, tmp_path: Path) -> None:
    turns = [{"role": "user", "content": "q"}]
    rows = [{"conversation": turns, "chosen": LONG + "yes", "rejected": LONG + "no"}]
    run = make_alignment(tmp_path / "run", decoder_directory, "dpo", rows=rows, max_length=40, held_out_share=0.0)
    with pytest.raises(NoRows, match="1 of 1 pairs are the same once cut to 40 tokens"):
        align(run)


def test_the_counts_are_plain_numbers() -> None:
    frame = chat_frame(CHATML)
    assert all(type(value) is int for value in asdict(alike_of([], frame, REWARD, most=0)).values())
