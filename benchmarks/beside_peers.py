"""Annotations a second of the product and of a peer in one run, in turn: medians, and how many times as many.

BENCH_PEER names the peer, label-studio or potato, and LABEL_STUDIO or POTATO its environment. While one is at work,
the processes of the other rest. Each is warmed up at the beginning of its turn, which is not counted.
"""

import os
import statistics
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import label_studio, potato, product
from benchmarks.load import Call, Outcome

if TYPE_CHECKING:
    from annotator.models import User

PEERS = ("label-studio", "potato")
ROUNDS = 3
OVERLAP = 3
WARM_UP_SECONDS = 3
PROMPT, RESPONSE = 300, 1500
Load = Callable[["Place", float], Outcome]


@dataclass(frozen=True)
class Place:
    """Where annotators work: the peer's name, empty for the product, its port, the project, and how they are known."""

    peer: str
    port: int
    project: str
    tokens: Sequence[str]


def peer_tasks(number: int) -> Iterator[Mapping[str, Any]]:
    """Yields tasks as long as those of `filling.make_project`."""
    for place in range(number):
        yield {
            "id": f"t-{place}",
            "messages": [{"content": f"{place}: {'Why does the light change? ' * 20}"[:PROMPT]}],
            "responses": [{"text": f"{side}{place} {'Because the sun is lower. ' * 70}"[:RESPONSE]} for side in "ab"],
        }


@contextmanager
def served(peer: str, folder: Path, *, tasks: int, annotators: int) -> Iterator[Place]:
    """Runs the peer with a project of so many tasks and with so many annotators."""
    environment = Path(os.environ[peer.replace("-", "_").upper()])
    rows = list(peer_tasks(tasks))
    if peer == "potato":
        with potato.served(environment, folder, rows, overlap=OVERLAP):
            yield Place(peer, potato.PORT, "", potato.log_in(annotators))
    else:
        with label_studio.served(environment, folder):
            tokens = label_studio.make_annotators(environment, folder, annotators)
            project = label_studio.make_project(rows, overlap=OVERLAP)
            yield Place(peer, label_studio.PORT, str(project), tokens)


def compare(peer: str, load: Load, *, crew: Mapping[str, "User"], tasks: int, annotators: int, seconds: float) -> None:
    """Prints a row for each round, and what came of them."""
    from benchmarks import filling

    print(f"\n{tasks:,} tasks, {annotators} annotators, {seconds:g} s each, {ROUNDS} times in turn with {peer}.\n")
    print("| | annotations a second | next p50 / p95 / p99, ms | submit p50 / p95 / p99, ms | errors |")
    print("|---|---|---|---|---|")
    rates: dict[str, list[float]] = {"": [], peer: []}
    with tempfile.TemporaryDirectory(prefix="rewardloop-peer-") as folder:
        Path(folder).chmod(0o711)
        with served(peer, Path(folder), tasks=tasks, annotators=annotators) as theirs, product.running():
            for _ in range(ROUNDS):
                filling.make_project("bench", crew=crew, tasks=tasks, characters=RESPONSE)
                ours = Place("", product.PORT, "bench", list(crew)[:annotators])
                for place in (ours, theirs):
                    load(place, WARM_UP_SECONDS)
                    outcome = load(place, seconds)
                    rates[place.peer].append(outcome.stored / outcome.seconds)
                    print(_row(place.peer or "Rewardloop", outcome), flush=True)
    ours_rate, their_rate = (statistics.median(rates[name]) for name in ("", peer))
    print(f"\nMedians: {ours_rate:.1f} and {their_rate:.1f} a second, {ours_rate / their_rate:.1f} times as many.")


def _row(name: str, outcome: Outcome) -> str:
    calls = " | ".join(_quantiles(outcome.calls.get(kind)) for kind in ("next", "submit"))
    errors = ", ".join(f"{number} x {kind}" for kind, number in outcome.errors.items()) or "0"
    return f"| {name} | {outcome.stored / outcome.seconds:.1f} | {calls} | {errors} |"


def _quantiles(call: Call | None) -> str:
    return f"{call.p50:.0f} / {call.p95:.0f} / {call.p99:.0f}" if call else ""
