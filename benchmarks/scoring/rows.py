"""What the database adds to a scored response, with a model that costs nothing; and what equal texts save."""

from __future__ import annotations

import time
from collections.abc import Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any
from uuid import UUID

from benchmarks import product

if TYPE_CHECKING:
    from rewards.models import RewardModel

ATTRIBUTES = ("helpfulness", "correctness", "coherence", "complexity", "verbosity")
CHARACTERS = 1_500
TASKS_A_CHUNK = 256
PARTS = 10


class Costless:
    """Scores nothing and everything: what is left is the database's time."""

    def encode(self, item: Any) -> str:
        return str(item.response)

    def key(self, encoded: str) -> UUID:
        return UUID(bytes=blake2b(encoded.encode(), digest_size=16).digest())

    def score_encoded(self, encoded: Sequence[str]) -> list[Any]:
        from rewards.scoring.chunks import Given

        return [Given(dict.fromkeys(ATTRIBUTES, 2.345678901234), 2.345678901234, 0.123456789) for _ in encoded]


def report(responses: int) -> None:
    with product.database():
        from benchmarks import filling

        project = filling.make_project("scored", crew={}, tasks=responses // 2, characters=CHARACTERS)
        model = make_champion(project)
        times = walk(model)
        whole = sum(times)
        print(f"\n{responses:,} responses of {CHARACTERS} characters, a model that costs nothing, one worker\n")
        print("| what | ms a response |\n|---|---|")
        print(f"| all | {1000 * whole / responses:.3f} |")
        tenth = max(len(times) // PARTS, 1)
        per_chunk = 2 * TASKS_A_CHUNK
        print(f"| the first tenth | {1000 * sum(times[:tenth]) / (tenth * per_chunk):.3f} |")
        print(f"| the last full tenth | {1000 * sum(times[-tenth - 1 : -1]) / (tenth * per_chunk):.3f} |")
        print(f"\nWith nothing new, the check that beat asks for takes {1000 * idle(model):.1f} ms.")
        again = sum(walk(model, anew=True))
        print(f"To pass all tasks again, scored ones only, takes {1000 * again / responses:.3f} ms a response.")


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


def walk(model: RewardModel, *, anew: bool = False) -> list[float]:
    """Seconds of each turn, taken one after the other without a queue."""
    from unittest import mock

    from django.utils import timezone

    from rewards.scoring import lanes

    messages: list[tuple[int, int]] = []
    seconds = []
    sent = mock.patch.object(lanes, "send", lambda *message: messages.append(message))
    with sent, mock.patch.object(lanes, "scorer_of", return_value=Costless()):
        lanes.wake(model, now=timezone.now(), anew=anew)
        while messages:
            start = time.perf_counter()
            turn = lanes.take(*messages.pop(), now=timezone.now(), tasks=TASKS_A_CHUNK)
            if turn:
                lanes.score(turn)
                lanes.finish(turn, now=timezone.now())
            seconds.append(time.perf_counter() - start)
    return seconds


def idle(model: RewardModel) -> float:
    from django.utils import timezone

    from rewards.scoring import start_due

    start = time.perf_counter()
    assert start_due(now=timezone.now()) == 0, model
    return time.perf_counter() - start
