"""Plain builders of judged rows: a good segment says yes, a bad one no, and the chosen response has more good ones."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from rewards.learning.aligning.align_config import AlignConfig
from rewards.learning.aligning.judged_rows import read_judged
from rewards.learning.aligning.sides import Unit, units_of
from rewards.learning.data import Turn
from rewards.learning.encoding import ChatFrame
from tests.rewards.learning.builders import write_jsonl
from tests.rewards.learning.conftest import make_tokenizer

Row = dict[str, Any]
TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}[{{ message['role'] }}] {{ message['content'] }}{{ eos_token }}"
    "{% endfor %}{% if add_generation_prompt %}[assistant] {% endif %}"
)
WORDS = {True: "yes. ", False: "no. "}


def make_judged_row(number: int, chosen: list[bool], rejected: list[bool], **more: Any) -> Row:
    sides: Row = {}
    for side, qualities in (("chosen", chosen), ("rejected", rejected)):
        sides[side], sides[f"{side}_segments"] = make_segments(qualities)
    return {"conversation": [{"role": "user", "content": f"Q{number}?"}], **sides, **more}


def make_segments(qualities: list[bool]) -> tuple[str, list[Row]]:
    text = ""
    segments: list[Row] = []
    for good in qualities:
        start = len(text)
        text += WORDS[good]
        scores = {"correctness": 4 if good else 0, "clarity": 3 if good else 1}
        segments.append({"start": start, "end": len(text), "scores": scores})
    segments[-1]["end"] -= 1
    return text[:-1], segments


def make_judged_rows(count: int, *, seed: int = 0) -> list[Row]:
    rng = random.Random(seed)
    rows: list[Row] = []
    while len(rows) < count:
        chosen, rejected = ([rng.random() < share for _ in range(3)] for share in (0.8, 0.2))
        if chosen != rejected:
            levels = {"attributes": {"helpfulness": 4, "verbosity": 1}}
            rows.append(make_judged_row(len(rows), chosen, rejected, **levels))
    return rows


def make_alignment(directory: Path, policy: Path, method: str, *, rows: list[Row] | None = None, **config: Any) -> Path:
    """A directory that `align` can be called on."""
    directory.mkdir(parents=True)
    write_jsonl(directory / "rows.jsonl", make_judged_rows(12) if rows is None else rows)
    small = {"learning_rate": 1e-3, "batch_size": 4, "samples": 0, "sample_tokens": 4, "threads": 1, "device": "cpu"}
    given = {"method": method, "policy": str(policy), "data": "rows.jsonl", **small, **config}
    (directory / "config.json").write_text(json.dumps(given), encoding="utf-8")
    return directory


def make_units(directory: Path, frame: ChatFrame, rows: list[Row], **config: Any) -> list[Unit]:
    settings = AlignConfig(**{"method": "dpo_2d", "policy": "p", "data": "d", **config})
    return units_of(read_judged(write_jsonl(directory / "rows.jsonl", rows), settings), frame, settings)


def make_frame(*, max_length: int = 512, template: str = TEMPLATE) -> ChatFrame:
    """A token is a character, so that lengths can be counted by eye."""
    return ChatFrame(make_tokenizer(pair=False), template, max_length)


def turns(*contents: str) -> tuple[Turn, ...]:
    roles = ["user", "assistant"] * len(contents)
    return tuple(Turn(role, content) for role, content in zip(roles, contents, strict=False))


def learnt_text(policy_frame: ChatFrame, unit: Unit, *, side: int = 0) -> str:
    encoded = unit.sides[side].encoded
    tokens = policy_frame.tokenizer.convert_ids_to_tokens([encoded.ids[place] for place in unit.sides[side].learnt])
    return "".join(tokens)
