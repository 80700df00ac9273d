"""Measures how well personal information is found, and how fast.

`bench_scale pii [FILE]`. FILE (or PII_TEXTS, or ../shared/data/pii_texts.jsonl) has lines
{text, spans: [{type, start, end}]} like microsoft/presidio-research's synthetic data. The recognisers were tuned on the
first, third, ... of its lines; the others were only counted. A true span counts as found if at least half of its
characters are marked with its kind, a found one as right if at least half of its characters are in true ones.
"""

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from annotator.launch.install import ROOT
from annotator.pii.recognisers import ORDER, Found
from benchmarks import product
from benchmarks.bench_pages import task

KINDS = {
    "EMAIL_ADDRESS": "email",
    "US_SSN": "ssn",
    "CREDIT_CARD": "card",
    "IBAN_CODE": "iban",
    "IP_ADDRESS": "ip",
    "PHONE_NUMBER": "phone",
    "STREET_ADDRESS": "address",
}
TASKS = 10_000


@dataclass
class Tally:
    """Counts for one kind: spans there are, those of them that are found, marks, and those of them that are right."""

    there: int = 0
    found: int = 0
    marked: int = 0
    right: int = 0

    def count(self, true: Sequence[range], marks: Sequence[range]) -> None:
        self.there += len(true)
        self.found += sum(mostly_in(span, marks) for span in true)
        self.marked += len(marks)
        self.right += sum(mostly_in(mark, true) for mark in marks)

    def cells(self) -> str:
        recall = f"{self.found / self.there:.2f}" if self.there else "–"
        precision = f"{self.right / self.marked:.2f}" if self.marked else "–"
        return f"{self.there} | {recall} | {precision}"


def mostly_in(span: range, areas: Iterable[range]) -> bool:
    inside = {place for area in areas for place in area}
    return 2 * len(inside.intersection(span)) >= len(span)


def quality(rows: Sequence[dict[str, Any]], marked: Sequence[Sequence[Found]]) -> dict[str, Tally]:
    tallies = {kind: Tally() for kind in ORDER}
    for row, marks in zip(rows, marked, strict=True):
        for kind, tally in tallies.items():
            true = [range(span["start"], span["end"]) for span in row["spans"] if KINDS.get(span["type"]) == kind]
            tally.count(true, [range(mark.start, mark.end) for mark in marks if mark.kind == kind])
    return tallies


def report_quality(file: Path) -> None:
    """Prints a row per kind: number, recall and precision on the half tuned on, on the other half, and on all."""
    if not file.exists():
        print(f"{file} is not here: name the file as the argument, or in PII_TEXTS.")
        return
    from annotator.pii.scans import Scanner

    rows = [json.loads(line) for line in file.read_text().splitlines()]
    with Scanner() as scanner:
        marks = scanner.find([row["text"] for row in rows])
    parts = [quality(rows[part], marks[part]) for part in (slice(0, None, 2), slice(1, None, 2), slice(None))]
    print(f"{len(rows)} texts; number, recall, precision\n")
    print("| kind | tuned on | | | held out | | | all | | |\n|---|---|---|---|---|---|---|---|---|---|")
    for kind in KINDS.values():
        print(f"| {kind} | " + " | ".join(part[kind].cells() for part in parts) + " |")


def report_speed() -> None:
    from annotator.pii.scans import processes_to_use

    imported("warm-up")
    alone = imported("alone")
    setup = "import os; os.nice(10); import django; django.setup(); from benchmarks.scale.pii import scanned; scanned()"
    beside = subprocess.Popen([sys.executable, "-c", setup], cwd=ROOT)
    time.sleep(3)  # until the recognisers are loaded
    slowed = imported("beside")
    beside.wait()
    os.nice(10)  # as the light worker, whose own work is no reason for it to rest
    print("\n| what | result |\n|---|---|")
    for number in sorted({1, processes_to_use()}):
        imported(f"scanned-{number}")
        seconds, megabytes = scanned(number)
        print(f"| tasks scanned a second by {number} scanners, of {TASKS:,} | {TASKS / seconds:,.0f} |")
        print(f"| memory of {number} scanners at their most | {megabytes:.0f} MB |")
    print(f"| rows imported a second, nothing scanned meanwhile | {TASKS / alone:,.0f} |")
    print(f"| rows imported a second, others scanned meanwhile | {TASKS / slowed:,.0f} |")


def imported(slug: str) -> float:
    """Imports TASKS rows into a project of its own; returns the seconds that it took."""
    from django.utils import timezone

    from annotator.importing import import_rows
    from annotator.models import Project, Rubric

    dice = random.Random(slug)
    lines = b"".join(json.dumps(task(number, dice)).encode() + b"\n" for number in range(TASKS))
    project = Project.objects.create(slug=slug, name=slug, rubric=Rubric.objects.get(key="helpsteer2"))
    start = time.perf_counter()
    result = import_rows(project, BytesIO(lines), now=timezone.now())
    assert result.created == TASKS, result.rejected[:1]
    return time.perf_counter() - start


def scanned(number: int = 1) -> tuple[float, float]:
    """Scans all tasks that nobody has scanned; returns the seconds, and the most megabytes that the children had."""
    from django.db import connection
    from django.utils import timezone

    from annotator.pii.scans import Scanners, scan

    with Scanners(number) as scanners:
        start = time.perf_counter()
        scan(scanners.find, now=timezone.now())
        seconds = time.perf_counter() - start
        children = [scanner.process.pid for scanner in scanners.scanners if scanner.process]
        most = [Path(f"/proc/{pid}/status").read_text().split("VmHWM:")[1].split()[0] for pid in children]
    connection.close()
    return seconds, sum(map(int, most)) / 1024


def main(words: Sequence[str]) -> None:
    name = words[0] if words else os.environ.get("PII_TEXTS", "")
    with product.database():
        report_quality(Path(name) if name else ROOT.parent / "shared" / "data" / "pii_texts.jsonl")
        report_speed()
