"""Divides a snapshot into the rows to learn from, to choose a step by and to judge by, as tokens with their answers."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from rewards.learning.alike import Alike, alike_of, sentences, with_alike
from rewards.learning.answers import TuningRows, answers_of, owns_tokens, segment_answers_of, segment_labels
from rewards.learning.chat_templates import UnrenderableConversation
from rewards.learning.config import REGRESSION, TrainConfig
from rewards.learning.data import Response, Snapshot, Task, has_labels, items_of, prompts_of, targets_of
from rewards.learning.encoding import Encoded, truncation_of
from rewards.learning.model import Loaded
from rewards.learning.model_files import Manifest
from rewards.learning.model_loading import positions
from rewards.learning.progress import Count, Progress
from rewards.learning.refusals import Refused
from rewards.learning.token_rows import TokenRows

PLAIN = (REGRESSION,)


class NothingApart(Refused):
    """Nobody rated a response, and all responses that people compared are the same to the model."""


@dataclass(frozen=True)
class Part:
    """Tasks with what the network reads of them and should answer, a row per response.

    `alike` counts the pairs whose responses are the same tokens, where that is known.
    """

    tasks: list[Task]
    rows: TuningRows
    alike: Alike | None = None

    def prompts(self) -> list[str]:
        """The prompt of each row."""
        return prompts_of(self.tasks)


@dataclass(frozen=True)
class Parts:
    """`fit` moves the weights, `dev` chooses among them, `validation` judges the chosen ones, once."""

    fit: Part
    dev: Part
    validation: Part

    def train(self) -> list[Part]:
        """Returns the parts that a stored ridge may learn from."""
        return [self.fit, self.dev]

    def counts(self) -> dict[str, Any]:
        """Returns the size of every part and what the token limit cut, for the metrics."""
        return {
            name: {
                "tasks": len(part.tasks),
                "labels": int(np.isfinite(part.rows.answers.labels).sum()),
                "pairs": len(part.rows.answers.pairs),
                "tokens": sum(part.rows.lengths),
                "truncation": asdict(truncation_of(part.rows.encoded)),
                "alike": asdict(part.alike) if part.alike else None,
                **segment_counts(part.rows),
            }
            for name, part in vars(self).items()
        }


def segment_counts(rows: TuningRows) -> dict[str, Any]:
    """Returns how many segments a part has, how many labels they have, and how many were dropped for want of a token.

    Nothing where the network has no head for segments.
    """
    if rows.answers.segments is None:
        return {}
    owned = owns_tokens(rows.encoded)
    counts = {"all": len(owned), "labels": rows.answers.segments.known(), "dropped": int((~owned).sum())}
    return {"segments": counts}


def parts_of(
    snapshot: Snapshot,
    manifest: Manifest,
    loaded: Loaded,
    config: TrainConfig,
    *,
    progress: Progress | None = None,
) -> Parts:
    """Returns the snapshot's parts as tokens of this network.

    Raises:
        UnrenderableConversation: the chat template refuses a conversation.
        NothingApart: nothing is left to learn from.
    """
    fit, dev = carve_dev(snapshot.train, config.dev_share)
    lacks_label = not np.isfinite(targets_of(fit, snapshot.attributes)).any(axis=0).all()
    lacks_score = not np.isfinite(segment_labels(fit, snapshot.aspects)).any(axis=0).all()
    # Without an attribute or an aspect to learn in fit, nothing is set apart for dev: the ridge is the candidate.
    if (lacks_label and has_labels(snapshot.train, snapshot.attributes)) or lacks_score:
        fit, dev = [*snapshot.train], []
    divided = (fit, dev, [*snapshot.validation])
    count = Count("encode", sum(len(task.responses) for tasks in divided for task in tasks), progress)
    parts = Parts(*(_part(tasks, manifest, loaded, config, count) for tasks in divided))
    answers, alike = parts.fit.rows.answers, parts.fit.alike
    is_rated = np.isfinite(answers.labels).any() or (answers.segments is not None and answers.segments.known())
    if alike is not None and alike.left_out and not len(answers.pairs) and not is_rated:
        raise NothingApart(f"there is nothing to learn from: {'; '.join(sentences(alike))}")
    return parts


def without_texts(parts: Parts) -> Parts:
    """Returns the parts as processes need them that only train: tokens and answers, and tasks that know their prompt.

    Texts and ratings take many times the memory of these.
    """
    return Parts(*(Part([_bare(task) for task in part.tasks], part.rows) for part in vars(parts).values()))


def _bare(task: Task) -> Task:
    responses = tuple(Response(response.id, "", {}, {}, ()) for response in task.responses)
    return Task(task.id, task.prompt_hash, (), responses, None)


def without_prompts(part: Part, prompts: Collection[str]) -> Part:
    """Returns the part without the tasks of these prompts; rows are numbered anew, in the same order."""
    tasks = [task for task in part.tasks if task.prompt_hash not in prompts]
    rows = [row for row, prompt in enumerate(part.prompts()) if prompt not in prompts]
    place = {row: number for number, row in enumerate(rows)}
    # Units never cross the border of a task.
    units = [[place[row] for row in unit] for unit in part.rows.units if unit[0] in place]
    encoded = TokenRows(part.rows.encoded[row] for row in rows)
    return Part(tasks, TuningRows(encoded, part.rows.answers.of_rows(rows), units))


def carve_dev(tasks: Sequence[Task], share: float) -> tuple[list[Task], list[Task]]:
    """Divides train tasks into (fit, dev) by a hash of the prompt; dev is empty when there is only one prompt.

    Checkpoints are chosen on dev, so that the validation rows, which decide on promotion, choose nothing.
    """
    # The "dev:" makes this order independent of the split into train and validation, which reads the same hash.
    order = sorted({task.prompt_hash for task in tasks}, key=lambda h: hashlib.sha256(f"dev:{h}".encode()).digest())
    dev = set(order[: math.ceil(share * len(order))]) if len(order) > 1 else set()
    return [t for t in tasks if t.prompt_hash not in dev], [t for t in tasks if t.prompt_hash in dev]


def _part(tasks: list[Task], manifest: Manifest, loaded: Loaded, config: TrainConfig, count: Count) -> Part:
    encoded = TokenRows(encoded_tasks(tasks, loaded, count))
    tasks = with_alike(tasks, encoded)
    answers = answers_of(
        tasks,
        manifest.attributes,
        reward=manifest.attribute_weights,
        rounded=config.targets == "label",
        by_agreement=config.weight_by_agreement,
    )
    if manifest.aspects:
        answers = replace(answers, segments=segment_answers_of(tasks, encoded, manifest.aspects))
    numbers = iter(range(len(encoded)))
    units = [[next(numbers) for _ in task.responses] for task in tasks]
    # A task's rows stay together where they are compared or share a pass over their prompt.
    if not loaded.network.packs and config.stages == PLAIN:
        units = [[row] for unit in units for row in unit]
    rows = TuningRows(encoded, answers, units)
    most = positions(loaded.network.network.config)
    return Part(tasks, rows, alike_of(tasks, loaded.frame, manifest.attribute_weights, most=most))


def encoded_tasks(tasks: Sequence[Task], loaded: Loaded, count: Count) -> Iterator[Encoded]:
    """Yields the responses of the tasks as tokens; an UnrenderableConversation names the task."""
    for task in tasks:
        for item in items_of([task]):
            try:
                yield loaded.frame.encode(item)
            except UnrenderableConversation as refusal:
                raise UnrenderableConversation(f"task {task.id}, {refusal}") from refusal
            count.add()
