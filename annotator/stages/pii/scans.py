"""Searches every task that has not been scanned for personal information, in a child process that ends afterwards."""

import json
import logging
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import datetime
from pathlib import Path
from threading import Timer
from typing import Self

from django.db import transaction
from django.db.models import QuerySet

from annotator.infrastructure.background import failures, messages, pacing
from annotator.infrastructure.db import locks
from annotator.models import PiiSpan, Project, Task
from annotator.stages.pii.recognisers import Found
from annotator.stages.pii.texts import Place, texts_of

PROGRAM = Path(__file__).with_name("recognisers.py")
BATCH = 100
PATIENCE_SECONDS = 120
MOST_SCANNERS = 4
"""Beyond it the tasks cannot be read and stored as fast as they are scanned."""
Find = Callable[[Sequence[str]], list[list[Found]]]
log = logging.getLogger(__name__)


class ScannerFailed(Exception):
    """The child ended, or took too long, while it scanned some texts."""


class Scanner:
    """Runs the recognisers in a child process, which starts with the first texts and ends with the block.

    If this process dies, the child ends as well, because its input then ends.
    """

    def __init__(self, patience: float = PATIENCE_SECONDS) -> None:
        self.patience = patience
        self.process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def find(self, texts: Sequence[str]) -> list[list[Found]]:
        """Returns what the recognisers find in each of the texts.

        Raises:
            ScannerFailed: The child gave no answer. The next call starts another child.
        """
        if self.process is None:
            # -I keeps this folder off the child's path, where our modules could hide others of the same names.
            command = [sys.executable, "-I", str(PROGRAM)]
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        child = self.process
        # Reading from the child has no timeout of its own; killing the child ends its output, and with it the reading.
        timer = Timer(self.patience, child.kill)
        timer.start()
        try:
            answer = self._asked(child, texts)
        finally:
            timer.cancel()
        return [[Found(*finding) for finding in of_text] for of_text in json.loads(answer)]

    def _asked(self, child: "subprocess.Popen[str]", texts: Sequence[str]) -> str:
        assert child.stdin
        assert child.stdout
        try:
            child.stdin.write(json.dumps(list(texts)) + "\n")
            child.stdin.flush()
            answer = child.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            self.end()
            raise ScannerFailed(f"The scanner ended with {child.returncode}.")
        return answer

    def end(self) -> None:
        """Ends the child, if it has been started."""
        if self.process:
            self.process.kill()
            self.process.communicate()
        self.process = None


class Scanners:
    """Shares the texts among several scanners, as many as others leave processors, and one at least."""

    def __init__(self, number: int) -> None:
        self.scanners = [Scanner() for _ in range(number)]

    def __enter__(self) -> Self:
        self.threads = ThreadPoolExecutor(len(self.scanners))
        return self

    def __exit__(self, *_: object) -> None:
        self.threads.shutdown()
        for scanner in self.scanners:
            scanner.end()

    def find(self, texts: Sequence[str]) -> list[list[Found]]:
        """Returns what the recognisers find in each of the texts. Raises ScannerFailed if one scanner does."""
        number = max(1, min(len(self.scanners), pacing.processors_left(), len(texts)))
        # Every n-th text, as the texts of a task are much longer than those of another.
        asked = [self.threads.submit(self.scanners[place].find, texts[place::number]) for place in range(number)]
        wait(asked)
        found: list[list[Found]] = [[]] * len(texts)
        for place, answer in enumerate(asked):
            found[place::number] = answer.result()
        return found


def scan_later() -> None:
    """Asks a worker to scan when the transaction is committed. Without a worker, beat asks again later."""
    messages.send_on_commit("annotator.tasks.find_pii")


def scan_all(*, now: datetime) -> int:
    """Scans every task that has not been scanned, unless another process is doing so; returns how many it scanned."""
    # A session lock, because every batch is stored in a transaction of its own.
    with locks.session_lock("pii") as is_alone, Scanners(processes_to_use()) as scanners:
        if not is_alone:
            return 0
        unscanned = Task.objects.unscanned()
        projects = Project.objects.filter(pk__in=unscanned.values("project")).order_by("pk")
        return failures.each_project(
            "find_pii", projects, lambda project: scan(scanners.find, now=now, tasks=unscanned.filter(project=project))
        )


def processes_to_use() -> int:
    """Returns how many scanners run at once: one for each processor, up to MOST_SCANNERS."""
    return min(pacing.processors(), MOST_SCANNERS)


def scan(find: Find, *, now: datetime, tasks: QuerySet[Task] | None = None) -> int:
    """Scans `tasks`, or all unscanned ones, in batches that are stored separately; returns how many it scanned."""
    unscanned = Task.objects.unscanned() if tasks is None else tasks
    ordered = unscanned.only("conversation", "redacted_at").prefetch_related("responses").order_by("pk")
    scanned = 0

    def next_batch() -> int:
        nonlocal scanned
        if batch := list(ordered[:BATCH]):
            scanned += _store(batch, _findings(batch, find), now=now)
        return len(batch)

    pacing.in_slices(next_batch)
    return scanned


def _findings(tasks: Sequence[Task], find: Find) -> dict[int, list[tuple[Place, Found]]]:
    """Returns what was found at which place, by task. A task over which the scanner fails counts as one without any."""
    places = [(task.pk, place, text) for task in tasks for place, text in texts_of(task).items()]
    try:
        answer = find([text for _, _, text in places])
    except ScannerFailed:
        if len(tasks) == 1:
            log.exception("Task %s cannot be scanned for personal information", tasks[0].pk)
            return {}
        # One at a time, so that the task which ends the scanner does not keep the others from being scanned.
        return {pk: findings for task in tasks for pk, findings in _findings([task], find).items()}
    findings: dict[int, list[tuple[Place, Found]]] = {}
    for (task_id, place, _), spans in zip(places, answer, strict=True):
        findings.setdefault(task_id, []).extend((place, span) for span in spans)
    return findings


@transaction.atomic
def _store(tasks: Sequence[Task], findings: Mapping[int, list[tuple[Place, Found]]], *, now: datetime) -> int:
    """Stores the spans of the tasks whose texts have not changed since; the others are scanned again.

    Returns how many tasks were stored.
    """
    scanned = {task.pk: task.redacted_at for task in tasks}
    # The texts were read without a lock, and a redaction may have replaced them meanwhile: storing would mark the wrong
    # characters, and count the new text as scanned. The locks are taken by id, as everywhere, to avoid deadlocks.
    locked = Task.objects.unscanned().filter(pk__in=scanned).select_for_update().order_by("pk")
    same = [pk for pk, redacted in locked.values_list("pk", "redacted_at") if redacted == scanned[pk]]
    PiiSpan.objects.bulk_create(
        [
            PiiSpan(
                task_id=task,
                turn=place.turn,
                response_id=place.response,
                start=span.start,
                end=span.end,
                kind=span.kind,
                source=PiiSpan.Source.DETECTED,
                created_at=now,
            )
            for task in same
            for place, span in findings.get(task, [])
        ],
        ignore_conflicts=True,
    )
    return Task.objects.filter(pk__in=same).update(pii_scanned_at=now)
