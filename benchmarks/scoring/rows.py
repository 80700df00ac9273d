"""Measures what the database adds to a scored response, by a model that costs nothing, and what equal texts save."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

from benchmarks import product
from benchmarks.bench_annotation import TICKS, Meter
from benchmarks.bench_pages import task
from benchmarks.scoring import minilm
from benchmarks.scoring.minilm import ATTRIBUTES

if TYPE_CHECKING:
    from rewards.models import RewardModel

CHARACTERS = 1_500
TASKS_A_CHUNK = 256
PARTS = 10
EQUAL_TASKS = 100


class Costless:
    """A scorer that answers at once with the same scores for every response: what remains is the database's time."""

    precision = "float32"

    def in_precision(self, name: str) -> Costless:
        return self

    def encode(self, item: Any) -> str:
        return str(item.response)

    def key(self, encoded: str) -> UUID:
        return UUID(bytes=blake2b(encoded.encode(), digest_size=16).digest())

    def score_encoded(self, encoded: Sequence[str]) -> list[Any]:
        from rewards.scoring.chunks import Given

        return [Given(dict.fromkeys(ATTRIBUTES, 2.345678901234), 2.345678901234, 0.123456789) for _ in encoded]


@dataclass(frozen=True)
class Cost:
    """The seconds that turns of scoring took: by the clock, of the worker's processor time and of PostgreSQL's."""

    clock: float
    worker: float
    postgres: float

    def cells(self, responses: int) -> str:
        return " | ".join(f"{1000 * seconds / responses:.3f}" for seconds in (self.clock, self.worker, self.postgres))


def report(responses: int) -> None:
    with product.database() as folder:
        from benchmarks import filling

        project = filling.make_project("scored", crew={}, tasks=responses // 2, characters=CHARACTERS)
        model = make_champion(project)
        print(f"\n{responses:,} responses of {CHARACTERS} characters, a model that costs nothing, one worker\n")
        print("| ms a response | clock | worker's processor | PostgreSQL's |\n|---|---|---|---|")
        turns = walk(model, Costless())
        tenth = len(turns) // PARTS
        a_tenth = tenth * 2 * TASKS_A_CHUNK
        print(f"| all | {summed(turns).cells(responses)} |")
        print(f"| the first tenth | {summed(turns[:tenth]).cells(a_tenth)} |")
        print(f"| the last full tenth | {summed(turns[-tenth - 3 : -3]).cells(a_tenth)} |")
        print(f"| once more, all scored | {summed(walk(model, Costless(), anew=True)).cells(responses)} |")
        print(f"\nWith nothing new, the check that beat asks for takes {1000 * idle(model):.1f} ms.")
        report_equal_texts(folder)


def report_equal_texts(folder: Path) -> None:
    """Scores the same tasks twice under different names: the second time, their responses are known by their tokens."""
    from rewards.learning.score import load

    minilm.store(folder / "minilm")
    scorer, model = load(folder / "minilm"), make_champion(make_project("equal"))
    first, again = (summed(scored(model, name, scorer)) for name in ("first", "again"))
    number = 2 * EQUAL_TASKS
    print(f"\n{number} responses with MiniLM: {1000 * first.worker / number:.1f} ms of processor time a response.")
    print(f"The same texts in other tasks: {1000 * again.worker / number:.1f} ms.")


def make_project(slug: str) -> Any:
    from annotator.models import Project, Rubric

    return Project.objects.create(slug=slug, name=slug, rubric=Rubric.objects.get(key="helpsteer2"))


def scored(model: RewardModel, name: str, scorer: Any) -> list[Cost]:
    from django.utils import timezone

    from annotator.importing import import_rows

    dice = random.Random(1)
    rows = (task(number, dice) | {"id": f"{name}-{number}"} for number in range(EQUAL_TASKS))
    lines = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    result = import_rows(model.project, BytesIO(lines), now=timezone.now())
    assert result.created == EQUAL_TASKS, result
    return walk(model, scorer)


def summed(costs: Sequence[Cost]) -> Cost:
    return Cost(*(sum(vars(cost)[name] for cost in costs) for name in ("clock", "worker", "postgres")))


def make_champion(project: Any, path: str = "models/none") -> RewardModel:
    from django.utils import timezone

    from rewards.models import RewardModel, RunState, TrainingRun

    run = TrainingRun.objects.create(project=project, reason="a benchmark", state=RunState.PROMOTED)
    return RewardModel.objects.create(
        project=project,
        run=run,
        version=1,
        path=path,
        attributes=list(ATTRIBUTES),
        attribute_weights=dict.fromkeys(ATTRIBUTES, 0.2),
        manifest={},
        is_champion=True,
        promoted_at=timezone.now(),
    )


def walk(model: RewardModel, scorer: Any, *, anew: bool = False) -> list[Cost]:
    """Takes the turns of a pass one after the other, without a queue; returns what each of them costs."""
    from unittest import mock

    from django.utils import timezone

    from rewards.scoring import pass_lanes

    messages: list[tuple[int, int]] = []
    costs, meter = [], Meter()
    collected = mock.patch.object(pass_lanes, "send", lambda *message: messages.append(message))
    with collected, mock.patch.object(pass_lanes, "scorer_of", return_value=scorer):
        pass_lanes.wake(model, now=timezone.now(), anew=anew)
        while messages:
            before = (time.perf_counter(), time.process_time(), meter.ticks()["postgres"] / TICKS)
            turn = pass_lanes.take(*messages.pop(), now=timezone.now(), tasks=TASKS_A_CHUNK)
            if turn:
                pass_lanes.score(turn)
                pass_lanes.finish(turn, now=timezone.now())
            after = (time.perf_counter(), time.process_time(), meter.ticks()["postgres"] / TICKS)
            costs.append(Cost(*(end - start for start, end in zip(before, after, strict=True))))
    return costs


def idle(model: RewardModel) -> float:
    from django.utils import timezone

    from rewards.scoring import start_due

    start = time.perf_counter()
    assert start_due(now=timezone.now()) == 0, model
    return time.perf_counter() - start
