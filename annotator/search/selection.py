"""The tasks that somebody chooses for a change of many: named one by one, or all that meet the criteria of a search."""

from collections.abc import Iterable, Sequence

from annotator.models import Project, Task, User
from annotator.models.public_ids import task_of
from annotator.reading.blindness import tasks_held_by
from annotator.search.criteria import Criteria, matching, searching

MOST_TASKS = 100_000
"""Tasks that can be changed at once."""


def named(project: Project, numbers: Iterable[int], *, reader: User) -> Sequence[int]:
    """Returns the ids of the project's tasks with these public numbers, without those that `matching` leaves out."""
    ids = [task for number in numbers if (task := task_of(number)) is not None]
    tasks = Task.objects.filter(project=project, pk__in=ids).exclude(state=Task.State.GOLD)
    return list(tasks.exclude(pk__in=tasks_held_by(reader)).order_by("pk").values_list("pk", flat=True))


def found(project: Project, criteria: Criteria, *, reader: User) -> Sequence[int]:
    """Returns the ids of the tasks that meet the criteria; one more than can be changed at once if there are more.

    Raises:
        NothingToFind, TooBroad: as the search does.
    """
    with searching():
        return list(matching(project, criteria, reader=reader).tasks.values_list("pk", flat=True)[: MOST_TASKS + 1])
