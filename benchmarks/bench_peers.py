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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks import peers, product
from benchmarks.bench_annotation import ANNOTATORS, WARM_UP_SECONDS, carried_out
from benchmarks.load import Plan
from benchmarks.measuring import heading, options, row, task_row

ROUNDS = 3
OVERLAP = 3
PROMPT, RESPONSE = 300, 1500


@contextmanager
def served(peer: str, folder: Path, *, tasks: int, annotators: int) -> Iterator[tuple[str, list[str]]]:
    """Runs the peer; yields its project, with so many tasks as long as ours, and what its annotators are known by."""
    environment = Path(os.environ[peer.replace("-", "_").upper()])
    rows = [task_row(number, prompt=PROMPT, response=RESPONSE) for number in range(tasks)]
    if peer == "potato":
        with peers.potato(environment, folder, rows, overlap=OVERLAP):
            yield "", peers.log_in(annotators)
    else:
        with peers.label_studio(environment, folder):
            tokens = peers.make_annotators(environment, folder, annotators)
            yield str(peers.make_project(rows, overlap=OVERLAP)[0]), tokens


def main(words: Sequence[str]) -> None:
    given = options(words, parts=("label-studio", "potato"), tasks=10_000, annotators=ANNOTATORS, seconds=20.0)
    peer = given.parts[0]
    if not os.environ.get(variable := peer.replace("-", "_").upper()):
        sys.exit(f"{variable} names no environment with {peer}.")
    print(f"{given.tasks:,} tasks, {given.annotators} annotators, {given.seconds:g} s each, {ROUNDS} times in turn.")
    rates: dict[str, list[float]] = {"Rewardloop": [], peer: []}
    with product.database(), tempfile.TemporaryDirectory(prefix="rewardloop-peer-") as name:
        from benchmarks import filling

        crew, folder = filling.make_crew(given.annotators), Path(name)
        folder.chmod(0o711)
        with served(peer, folder, tasks=given.tasks, annotators=given.annotators) as theirs, product.running():
            places = {
                "Rewardloop": ((product.PORT, "bench", list(crew)), ["benchmarks.load"]),
                peer: ((peers.PORTS[peer], *theirs), ["benchmarks.peers", peer]),
            }
            heading("", "annotations a second", "next p50 / p95 / p99, ms", "submit p50 / p95 / p99, ms", "errors")
            for _ in range(ROUNDS):
                filling.make_project("bench", crew=crew, tasks=given.tasks, characters=RESPONSE)
                for who, (place, program) in places.items():
                    carried_out(Plan(*place, WARM_UP_SECONDS, carry=who != peer), program=program)
                    outcome = carried_out(Plan(*place, given.seconds, carry=who != peer), program=program)
                    rates[who].append(outcome.rate())
                    calls = (outcome.cell(kind, given.annotators) for kind in ("next", "submit"))
                    row(who, f"{outcome.rate():.1f}", *calls, outcome.troubles())
    ours, peers_rate = (statistics.median(of) for of in rates.values())
    print(f"\nMedians: {ours:.1f} and {peers_rate:.1f} a second, {ours / peers_rate:.1f} times as many.")


if __name__ == "__main__":
    main(sys.argv[1:])
