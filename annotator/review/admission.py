"""Lets submitted work count that did not: each piece takes a slot of its task, and where none is free, one more.

A reviewer's or a manager's decision: by itself nothing without a slot ever comes to count.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import datetime

from django.db.models import QuerySet

from annotator import consensus
from annotator.db.statements import Statement
from annotator.models import Assignment, Project, Task

# The tasks first: a trigger refuses a slot beyond those that its task wants.
_WIDEN = Statement(
    """
    UPDATE annotator_task t SET slots_wanted = greatest(t.slots_wanted, x.slots) FROM (
        SELECT task, max(slot) AS slots FROM unnest(%(tasks)s::bigint[], %(slots)s::smallint[]) AS y (task, slot)
        GROUP BY task
    ) x WHERE t.id = x.task
    """,
    prepared=False,
)
_TAKE = Statement(
    """
    UPDATE annotator_assignment s SET counts = true, extra = false, slot = x.slot
    FROM unnest(%(ids)s::bigint[], %(slots)s::smallint[]) AS x (id, slot) WHERE s.id = x.id
    """,
    prepared=False,
)


def admit_and_settle(
    assignments: QuerySet[Assignment], tasks: Sequence[Task], *, project: Project, now: datetime
) -> None:
    """Lets the assignments count, all of which are of these locked tasks, and settles the tasks."""
    rated = assignments.filter(state=Assignment.State.SUBMITTED).exclude(response_order=[]).order_by("pk")
    admitted = list(rated.values_list("pk", "task"))
    held = _held_slots({task for _, task in admitted})
    slots = []
    for _, task in admitted:
        slot = next(number for number in range(1, len(held[task]) + 2) if number not in held[task])
        held[task].add(slot)
        slots.append(slot)
    # Leases that ended, and imported preferences: they count without a slot.
    assignments.exclude(pk__in=[pk for pk, _ in admitted]).update(counts=True)
    _WIDEN.run(tasks=[task for _, task in admitted], slots=slots)
    _TAKE.run(ids=[pk for pk, _ in admitted], slots=slots)
    consensus.settle(tasks, project=project, now=now)


def _held_slots(tasks: Collection[int]) -> dict[int, set[int]]:
    held: dict[int, set[int]] = defaultdict(set)
    taken = Assignment.objects.filter(task__in=tasks, slot__isnull=False)
    for task, slot in taken.values_list("task", "slot"):
        held[task].add(slot or 0)
    return held
