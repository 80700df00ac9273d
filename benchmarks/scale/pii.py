"""Measures how well personal information is found, and how fast.

`bench_scale pii [FILE]`. FILE (or PII_TEXTS, or ../shared/data/pii_texts.jsonl) has lines {text, spans: [{type, start,
end}]} like microsoft/presidio-research's synthetic data. The recognisers were tuned on the first, third, ... of its
lines; the others were only counted. A true span counts as found if at least half of its characters are marked with its
kind, a found one as right if at least half of its characters are in true ones.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

from annotator.launch.install import ROOT
from annotator.stages.pii.recognisers import Found
from benchmarks import product
from benchmarks.measuring import DATA, heading, row, task_row
from benchmarks.processes import status

KINDS = {"EMAIL_ADDRESS": "email", "US_SSN": "ssn", "CREDIT_CARD": "card", "IBAN_CODE": "iban", "IP_ADDRESS": "ip"}
KINDS |= {"PHONE_NUMBER": "phone", "STREET_ADDRESS": "address"}
TASKS = 10_000


def mostly_in(span: range, areas: Iterable[range]) -> bool:
    inside = {place for area in areas for place in area}
    return 2 * len(inside.intersection(span)) >= len(span)


def cells(kind: str, rows: Sequence[dict[str, Any]], marked: Sequence[Sequence[Found]]) -> list[str]:
    """Returns the number of spans of a kind, the share of them that is found, and the share of marks that are right."""
    there = found = marks = right = 0
    for one, of_one in zip(rows, marked, strict=True):
        true = [range(span["start"], span["end"]) for span in one["spans"] if KINDS.get(span["type"]) == kind]
        ours = [range(mark.start, mark.end) for mark in of_one if mark.kind == kind]
        there, marks = there + len(true), marks + len(ours)
        found += sum(mostly_in(span, ours) for span in true)
        right += sum(mostly_in(mark, true) for mark in ours)
    return [str(there), f"{found / there:.2f}" if there else "–", f"{right / marks:.2f}" if marks else "–"]


def report_quality(file: Path) -> None:
    """Prints a row per kind: number, recall and precision on the half tuned on, on the other half, and on all."""
    if not file.exists():
        print(f"{file} is not here: name the file as the argument, or in PII_TEXTS.")
        return
    from annotator.stages.pii.scans import Scanner

    rows = [json.loads(line) for line in file.read_text().splitlines()]
    with Scanner() as scanner:
        marks = scanner.find([row["text"] for row in rows])
    print(f"{len(rows)} texts; number, recall, precision")
    heading("kind", "tuned on", "", "", "held out", "", "", "all", "", "")
    for kind in KINDS.values():
        parts = (slice(0, None, 2), slice(1, None, 2), slice(None))
        row(kind, *(cell for part in parts for cell in cells(kind, rows[part], marks[part])))


def report_speed() -> None:
    from annotator.stages.pii.scans import processes_to_use

    imported("warm-up")
    alone = imported("alone")
    setup = "import os; os.nice(10); import django; django.setup(); from benchmarks.scale.pii import scanned; scanned()"
    beside = subprocess.Popen([sys.executable, "-c", setup], cwd=ROOT)
    time.sleep(3)  # until the recognisers are loaded
    slowed = imported("beside")
    beside.wait()
    os.nice(10)  # as the light worker, whose own work is no reason for it to rest
    heading("what", "result")
    for number in sorted({1, processes_to_use()}):
        imported(f"scanned-{number}")
        seconds, megabytes = scanned(number)
        row(f"tasks scanned a second by {number} scanners, of {TASKS:,}", f"{TASKS / seconds:,.0f}")
        row(f"memory of {number} scanners at their most", f"{megabytes:.0f} MB")
    row("rows imported a second, nothing scanned meanwhile", f"{TASKS / alone:,.0f}")
    row("rows imported a second, others scanned meanwhile", f"{TASKS / slowed:,.0f}")


def imported(slug: str) -> float:
    """Imports TASKS rows into a project of its own; returns the seconds that it took."""
    from django.utils import timezone

    from annotator.models import Project, Rubric
    from annotator.stages.importing import import_rows

    lines = b"".join(json.dumps(task_row(number)).encode() + b"\n" for number in range(TASKS))
    project = Project.objects.create(slug=slug, name=slug, rubric=Rubric.objects.get(key="helpsteer2"))
    start = time.perf_counter()
    result = import_rows(project, BytesIO(lines), now=timezone.now())
    assert result.created == TASKS, result.rejected[:1]
    return time.perf_counter() - start


def scanned(number: int = 1) -> tuple[float, float]:
    """Scans all tasks that nobody has scanned; returns the seconds, and the most megabytes that the children had."""
    from django.db import connection
    from django.utils import timezone

    from annotator.stages.pii.scans import Scanners, scan

    with Scanners(number) as scanners:
        start = time.perf_counter()
        scan(scanners.find, now=timezone.now())
        seconds = time.perf_counter() - start
        children = [scanner.process.pid for scanner in scanners.scanners if scanner.process]
        most = sum(status(pid, "VmHWM") for pid in children)
    connection.close()
    return seconds, most / 2**20


def main(words: Sequence[str]) -> None:
    name = words[0] if words else os.environ.get("PII_TEXTS", "")
    with product.database():
        report_quality(Path(name) if name else DATA / "pii_texts.jsonl")
        report_speed()
