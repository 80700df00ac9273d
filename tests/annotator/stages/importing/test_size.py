"""A file of any size: constant memory, a fixed number of queries a batch."""

import io
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from annotator.models import Project, Response
from annotator.stages.importing import import_rows
from tests.builders import NOW, imported, label_row


class Endless(io.RawIOBase):
    """A file that is never whole in memory."""

    def __init__(self, lines: Iterator[bytes]) -> None:
        self._lines = lines
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while len(self._rest) < len(buffer) and (line := next(self._lines, b"")):
            self._rest += line
        data, self._rest = self._rest[: len(buffer)], self._rest[len(buffer) :]
        buffer[: len(data)] = data
        return len(data)


def resident() -> int:
    """Bytes of memory that this process holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def many_lines(rows: int, sizes: list[int]) -> Iterator[bytes]:
    for number in range(rows):
        if number % 10_000 == 0:
            sizes.append(resident())
        row = label_row(f"What is {number // 2}? " * 10, f"Answer {number}. " * 20, helpfulness=number % 5)
        yield json.dumps(row).encode() + b"\n"


@pytest.mark.slow
def test_forty_thousand_rows_pass_in_constant_memory(project: Project) -> None:
    sizes: list[int] = []
    result = import_rows(project, io.BufferedReader(Endless(many_lines(40_000, sizes))), now=NOW)
    assert (result.created, Response.objects.count()) == (20_000, 40_000)
    assert max(sizes[1:]) - sizes[1] < 16 * 1024 * 1024


def test_a_batch_costs_a_fixed_number_of_queries(
    project: Project, django_assert_max_num_queries: Callable[[int], Any]
) -> None:
    # One of them is the builder's, one the entry of the import's beginning.
    with django_assert_max_num_queries(18):
        imported(project, *(label_row(f"p{number // 2}", f"a{number}") for number in range(500)))
