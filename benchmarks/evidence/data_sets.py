"""Three real data sets as labelled tasks with the features of the default backbone."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.real_data import DATA
from benchmarks.training.pairs import read_hh
from rewards.learning.backbones import find_backbone
from rewards.learning.baseline import depths, read
from rewards.learning.config import AUTO, TrainConfig
from rewards.learning.data import Floats, Response, Task, Turn, items_of
from rewards.learning.inference import frozen_features
from rewards.learning.model_loading import load_backbone
from rewards.learning.precision import with_precision


@dataclass(frozen=True)
class DataSet:
    """Labelled tasks of which each prompt is one, with the features [rows, d] of each depth; rows are responses.

    `blocks` are the columns of each block of features, `places` the rows of each task. `drawn` prompts make one first
    model; `doubled` prompts are doubled for the curve.
    """

    name: str
    tasks: list[Task]
    attributes: tuple[str, ...]
    features: list[Floats]
    blocks: Sequence[int]
    places: list[list[int]]
    drawn: int
    doubled: int

    @property
    def weights(self) -> dict[str, float]:
        return dict.fromkeys(self.attributes, 1.0)

    def prompts(self) -> list[str]:
        return sorted({task.prompt_hash for task in self.tasks})


def response(name: str, text: str, scores: Mapping[str, float]) -> Response:
    return Response(name, text, scores, {}, [])


def judged() -> tuple[list[Task], tuple[str, ...]]:
    """Responses with three ratings of 1 to 5, which are three attributes here."""
    rows = [json.loads(line) for line in (DATA / "llm_judge_ratings.jsonl").read_text(encoding="utf-8").splitlines()]
    attributes = ("first", "second", "third")
    tasks = []
    for row in rows:
        scores = {key: float(score - 1) for key, score in zip(attributes, row["scores"], strict=True)}
        answer = response(str(row["id"]), row["response"], scores)
        tasks.append(Task(str(row["id"]), hashed(row["prompt"]), (Turn("user", row["prompt"]),), (answer,), None))
    return tasks, attributes


def ranked() -> tuple[list[Task], tuple[str, ...]]:
    """Conversations of which people ranked the answers, as a rating of 4 for the best; a tree counts as one prompt."""
    rows = [json.loads(line) for line in (DATA / "oasst_tasks.jsonl").read_text(encoding="utf-8").splitlines()]
    tasks = []
    for row in rows:
        answers = tuple(
            response(answer["id"], answer["text"], {"quality": float(max(0, 4 - answer["rank"]))})
            for answer in row["responses"]
            if answer["rank"] is not None
        )
        turns = tuple(Turn(turn["role"], turn["content"]) for turn in row["messages"])
        if answers:
            tasks.append(Task(row["id"], hashed(row["tree"]), turns, answers, None))
    return tasks, ("quality",)


def preferred(most: int) -> tuple[list[Task], tuple[str, ...]]:
    """Pairs of answers, the better one first and second by turns."""
    pairs = read_hh(DATA / "hh_pairs_train.jsonl.gz")
    tasks = []
    for number in np.random.default_rng(0).permutation(len(pairs))[:most].tolist():
        both = [response(f"{number}{side}", item.response, {}) for side, item in zip("ab", pairs[number], strict=True)]
        conversation = pairs[number][0].conversation
        prompt = hashed(json.dumps([turn.content for turn in conversation]))
        order = both if number % 2 else both[::-1]
        tasks.append(Task(str(number), prompt, conversation, tuple(order), -1 if number % 2 else 1))
    return tasks, ("helpfulness",)


def hashed(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def read_features(name: str, tasks: list[Task], folder: Path | None) -> tuple[list[Floats], list[int]]:
    """Returns the frozen features of every depth, out of `folder` where it has them, and their blocks."""
    ids = hashed("".join(item.id for item in items_of(tasks)))[:12]
    kept = folder / f"{name}-{ids}.npz" if folder else None
    if kept and kept.is_file():
        with np.load(kept) as stored:
            return [stored[key] for key in sorted(set(stored.files) - {"blocks"})], stored["blocks"].tolist()
    source = find_backbone(TrainConfig(snapshot="").backbone, source="")
    # In the precision that a training run would choose on this machine.
    loaded = with_precision(load_backbone(source, attributes=("a",), max_length=256), AUTO)
    encoded = [loaded.frame.encode(item) for item in items_of(tasks)]
    features = []
    for layers in depths(loaded.network, 0):
        read(loaded.network, layers)
        features.append(frozen_features(loaded, encoded, batch_tokens=8192))
    if kept and folder:
        folder.mkdir(parents=True, exist_ok=True)
        depth = {f"depth{number}": values for number, values in enumerate(features)}
        np.savez(kept, blocks=np.array(loaded.network.blocks), **depth)  # type: ignore[arg-type]
    return features, list(loaded.network.blocks)


def data_sets(*, quick: bool, folder: Path | None) -> Iterator[DataSet]:
    pairs = 700 if quick else 1_500
    plans: list[tuple[str, tuple[list[Task], tuple[str, ...]], int, int]] = [
        ("ratings by a judge", judged(), 280, 90),
        ("ranks of answers", ranked(), 90, 40),
        ("preferences", preferred(pairs), 600 if quick else 1_300, 200 if quick else 400),
    ]
    for name, (tasks, attributes), drawn, doubled in plans:
        features, blocks = read_features(name.replace(" ", "-"), tasks, folder)
        rows = iter(range(len(features[0])))
        places = [[next(rows) for _ in task.responses] for task in tasks]
        yield DataSet(name, tasks, attributes, features, blocks, places, drawn, doubled)
