"""Rewardloop beside other products: annotations a second of each in one run, in turn, and how many times as many.

`python -m benchmarks.bench_peers label-studio|potato [--tasks N] [--annotators C] [--seconds S]`. While one is at work,
the processes of the other rest. Each is warmed up at the beginning of its turn, which is not counted.

| variable | what it names |
|---|---|
| `LABEL_STUDIO` | an environment with the packages label-studio and uwsgi; `bench_io` has it take and give data, too |
| `LABEL_STUDIO_DATABASE_URL` | an account of a PostgreSQL with the extension pg_trgm; without it, it has SQLite |
| `POTATO` | an environment with the packages potato-annotation and gunicorn |
| `TRL_PYTHON` | the Python of an environment with TRL, for `bench_training` and `bench_aligning speed` |
"""

import os
import statistics
import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import product
from benchmarks.bench_annotation import ANNOTATORS, WARM_UP_SECONDS, carried_out
from benchmarks.load import Call, Outcome, Plan
from benchmarks.peers import label_studio, potato

if TYPE_CHECKING:
    from annotator.models import User

PEERS = ("label-studio", "potato")
ROUNDS = 3
OVERLAP = 3
PROMPT, RESPONSE = 300, 1500


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


def load(place: Place, seconds: float) -> Outcome:
    plan = Plan(place.port, place.project, place.tokens, seconds, carry=not place.peer)
    return carried_out(plan, peer=place.peer)


def compare(peer: str, *, crew: Mapping[str, "User"], tasks: int, annotators: int, seconds: float) -> None:
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


def main(words: Sequence[str]) -> None:
    parser = ArgumentParser(prog="bench_peers")
    parser.add_argument("peer", choices=PEERS)
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--annotators", type=int, default=ANNOTATORS, choices=range(1, ANNOTATORS + 1))
    parser.add_argument("--seconds", type=float, default=20)
    chosen = parser.parse_args(words)
    if not os.environ.get(variable := chosen.peer.replace("-", "_").upper()):
        parser.error(f"{variable} names no environment with {chosen.peer}.")
    with product.database():
        from benchmarks import filling

        crew = filling.make_crew(ANNOTATORS)
        compare(chosen.peer, crew=crew, tasks=chosen.tasks, annotators=chosen.annotators, seconds=chosen.seconds)


if __name__ == "__main__":
    main(sys.argv[1:])
