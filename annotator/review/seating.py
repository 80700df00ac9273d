"""Settles tasks whose annotations count no more, or again: one that counts beside the slots takes a free one."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import datetime

from django.db.models import Exists, OuterRef, QuerySet

from annotator import consensus
from annotator.models import Assignment, Project, Rating, Task
from annotator.statements import Statement

_TAKE = Statement(
    """
    UPDATE annotator_assignment s SET slot = x.slot
    FROM unnest(%(ids)s::bigint[], %(slots)s::smallint[]) AS x (id, slot) WHERE s.id = x.id
    """,
    prepared=False,
)


def seat_and_settle(tasks: Sequence[Task], *, project: Project, now: datetime) -> None:
    """Of locked tasks. What has come to count may ask for more annotators, and so for the slot that it needs itself."""
    _seat(tasks)
    consensus.settle(tasks, project=project, now=now)
    while seated := _seat(tasks):
        consensus.settle(seated, project=project, now=now)


def _seat(tasks: Sequence[Task]) -> list[Task]:
    """Gives those beside the slots the lowest free ones, the oldest first; returns the tasks that gave some."""
    with_room = {task.pk: task for task in tasks if task.open_slots}
    candidates = list(_beside(with_room)) if with_room else []
    if not candidates:
        return []
    held = _held_slots(with_room)
    seated = []
    for each in candidates:
        task = with_room[each.task_id]
        if task.open_slots:
            each.slot = next(slot for slot in range(1, task.slots_wanted + 1) if slot not in held[task.pk])
            held[task.pk].add(each.slot)
            task.open_slots -= 1
            seated.append(each)
    _TAKE.run(ids=[each.pk for each in seated], slots=[each.slot for each in seated])
    return [with_room[pk] for pk in dict.fromkeys(each.task_id for each in seated)]


def _beside(tasks: Collection[int]) -> QuerySet[Assignment]:
    """Who has rated and holds no slot. An imported preference alone takes none, as the ratings are still wanted."""
    rated = Rating.objects.filter(annotation__assignment=OuterRef("pk"))
    standing = Assignment.objects.submitted().filter(task__in=tasks, counts=True, slot__isnull=True)
    return standing.filter(Exists(rated)).order_by("pk")


def _held_slots(tasks: Collection[int]) -> dict[int, set[int]]:
    held: dict[int, set[int]] = defaultdict(set)
    taken = Assignment.objects.filter(task__in=tasks, slot__isnull=False)
    for task, slot in taken.values_list("task", "slot"):
        held[task].add(slot or 0)
    return held
