"""Looks for personal information in every task that nobody has looked into, by a child process that does not stay."""

import json
import logging
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from threading import Timer
from typing import Self

from django.db import transaction
from django.db.models import QuerySet

from annotator.background import failures, messages
from annotator.db import locks
from annotator.models import PiiSpan, Project, Task
from annotator.pii.recognisers import Found
from annotator.pii.texts import Place, texts_of

PROGRAM = Path(__file__).with_name("recognisers.py")
BATCH = 50
PATIENCE_SECONDS = 120
Find = Callable[[Sequence[str]], list[list[Found]]]
log = logging.getLogger(__name__)


class ScannerFailed(Exception):
    """The child ended, or took too long, over what it was given."""


class Scanner:
    """The recognisers in a process of their own, which starts when it is needed and ends with the block.

    It ends with us too: its input is then at its end.
    """

    def __init__(self, patience: float = PATIENCE_SECONDS) -> None:
        self.patience = patience
        self.process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def find(self, texts: Sequence[str]) -> list[list[Found]]:
        """What stands in each of the texts.

        Raises:
            ScannerFailed: no answer; the next call starts another child.
        """
        child = self._running()
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
            self._end()
            raise ScannerFailed(f"The scanner ended with {child.returncode}.")
        return answer

    def _running(self) -> "subprocess.Popen[str]":
        if self.process is None:
            command = [sys.executable, "-I", str(PROGRAM)]
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self.process

    def _end(self) -> None:
        if self.process:
            self.process.kill()
            self.process.communicate()
        self.process = None


def scan_later() -> None:
    """Without a worker the tasks stay as they are until one comes: beat asks again."""
    messages.send_on_commit("annotator.tasks.find_pii")


def scan_all(*, now: datetime) -> int:
    """Scans every task that has not been, unless somebody is at it already; returns how many."""
    with locks.session_lock("pii") as is_alone, Scanner() as scanner:
        if not is_alone:
            return 0
        unscanned = Task.objects.unscanned()
        projects = Project.objects.filter(pk__in=unscanned.values("project")).order_by("pk")
        return failures.each_project(
            "find_pii", projects, lambda project: scan(scanner.find, now=now, tasks=unscanned.filter(project=project))
        )


def scan(find: Find, *, now: datetime, tasks: QuerySet[Task] | None = None) -> int:
    """Scans all tasks, or those, in batches, each stored by itself."""
    total, left = 0, Task.objects.unscanned() if tasks is None else tasks
    while batch := _next_tasks(left):
        total += _store(batch, _looked_into(batch, find), now=now)
    return total


def _next_tasks(left: QuerySet[Task]) -> list[Task]:
    tasks = left.only("conversation", "redacted_at").prefetch_related("responses")
    return list(tasks.order_by("pk")[:BATCH])


def _looked_into(tasks: Sequence[Task], find: Find) -> dict[int, list[tuple[Place, Found]]]:
    """What stands where, by task. A task that ends the scanner by itself counts as one that holds nothing."""
    places = [(task.pk, place, text) for task in tasks for place, text in texts_of(task).items()]
    try:
        answer = find([text for _, _, text in places])
    except ScannerFailed:
        if len(tasks) == 1:
            log.exception("Task %s cannot be scanned for personal information", tasks[0].pk)
            return {}
        return {pk: findings for task in tasks for pk, findings in _looked_into([task], find).items()}
    findings: dict[int, list[tuple[Place, Found]]] = {}
    for (task_id, place, _), spans in zip(places, answer, strict=True):
        findings.setdefault(task_id, []).extend((place, span) for span in spans)
    return findings


@transaction.atomic
def _store(tasks: Sequence[Task], findings: Mapping[int, list[tuple[Place, Found]]], *, now: datetime) -> int:
    """Stores the spans of those tasks whose texts are still what was scanned; the others come again."""
    scanned = {task.pk: task.redacted_at for task in tasks}
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
