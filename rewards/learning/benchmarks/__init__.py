"""Reads benchmarks of reward models in their published formats, which are recognised by their columns."""

from __future__ import annotations

from collections.abc import Sequence

from rewards.learning.benchmarks import judgebench, preferences, rewardbench1, rewardbench2, rmbench
from rewards.learning.benchmarks.cases import Benchmark, Case, Row
from rewards.learning.data import BadRow, EmptyPart
from rewards.learning.refusals import Refused

# The plainest comes last: every row of RewardBench would also pass for a plain pair.
BENCHMARKS: tuple[Benchmark, ...] = (
    rewardbench2.BENCHMARK,
    rmbench.BENCHMARK,
    judgebench.BENCHMARK,
    rewardbench1.BENCHMARK,
    preferences.BENCHMARK,
)
SNAPSHOT = "snapshot"
SNAPSHOT_COLUMNS = frozenset({"task", "prompt_hash", "conversation", "responses"})


class UnknownFormat(Refused):
    """The columns are of no known format; the message lists the known ones."""


def recognise(name: str, rows: Sequence[Row]) -> Benchmark | None:
    """Returns the format of the rows by the first of them; None for rows of a snapshot.

    Raises:
        EmptyPart: there are no rows.
        UnknownFormat: the columns are of no known format.
    """
    if not rows:
        raise EmptyPart(f"{name} holds no rows")
    first = rows[0]
    if set(first) >= SNAPSHOT_COLUMNS:
        return None
    for known in BENCHMARKS:
        if known.matches(first):
            return known
    formats = "; ".join(f"{known.name}: {known.columns}" for known in BENCHMARKS)
    columns = ", ".join(sorted(SNAPSHOT_COLUMNS))
    raise UnknownFormat(
        f"{name} has the columns {', '.join(sorted(map(str, first)))[:200]}, which are of no known format. "
        f"Known are {SNAPSHOT}: {columns}; {formats}"
    )


def cases_of(name: str, rows: Sequence[Row], benchmark: Benchmark) -> list[Case]:
    """Returns the rows as cases; the first row that does not fit raises BadRow with its number."""
    cases = []
    for number, row in enumerate(rows, start=1):
        try:
            cases.append(benchmark.case(row))
        except (KeyError, TypeError, ValueError, IndexError) as error:
            reason = f"lacks {error}" if isinstance(error, KeyError) else str(error)
            raise BadRow(f"{name}, row {number}: {reason}") from None
    return cases
