"""Lets submitted work count that did not: each piece takes a free slot of its task, or adds a slot if none is free.

This follows from a reviewer's or a manager's decision; nothing without a slot ever comes to count by itself.
"""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime

from django.db.models import QuerySet

from annotator.infrastructure.db.statements import Statement
from annotator.models import Assignment, Project, Task
from annotator.stages import consensus

# Runs before _TAKE: a trigger refuses a slot above the number that its task wants.
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
    """Lets the assignments count, all of which belong to these tasks, and settles the tasks.

    The caller has locked the tasks, so that nobody else takes the slots that are chosen here.
    """
    rated = assignments.filter(state=Assignment.State.SUBMITTED).exclude(response_order=[]).order_by("pk")
    admitted = list(rated.values_list("pk", "task"))
    taken: dict[int, set[int]] = defaultdict(set)
    with_slot = Assignment.objects.filter(task__in={task for _, task in admitted}, slot__isnull=False)
    for task, number in with_slot.values_list("task", "slot"):
        taken[task].add(number or 0)
    slots = []
    for _, task in admitted:
        slot = next(number for number in range(1, len(taken[task]) + 2) if number not in taken[task])
        taken[task].add(slot)
        slots.append(slot)
    # The others are leases that ended, and imported preferences: they count without a slot.
    assignments.exclude(pk__in=[pk for pk, _ in admitted]).update(counts=True)
    _WIDEN.run(tasks=[task for _, task in admitted], slots=slots)
    _TAKE.run(ids=[pk for pk, _ in admitted], slots=slots)
    consensus.settle(tasks, project=project, now=now)
