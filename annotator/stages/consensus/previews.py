"""Says what other numbers of the protocol would do to a project's tasks and labels, before anybody saves them.

It computes what a recount would write and writes nothing. Of many tasks it reads a random sample; the margin of an
estimate is then half the width of its 95 % interval.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, sqrt
from statistics import fmean, variance

from django.db.models import Max, Min, Q

from annotator.models import Assignment, Label, Project, Task
from annotator.stages.consensus.rules import Rules
from annotator.stages.consensus.settlement import LabelValues, agreed_values, computed

EXACT = 3_000
"""The most tasks with work on them that are all read."""
SAMPLE = 2_000
MOST_PROBES = 60_000
"""The most ids that are drawn to find the sample's tasks."""
_BEGUN = Q(state=Task.State.COMPLETE) | Q(state=Task.State.OPEN, begun=True)
_IN_LINE = Q(state=Task.State.OPEN, open_slots__gt=0, begun=True)
_NORMAL_95 = 1.96


@dataclass(frozen=True)
class Effect:
    """A number of tasks, labels or annotations; `margin` is 0 where every task was read."""

    number: int
    margin: int = 0


@dataclass(frozen=True)
class ProtocolPreview:
    """What a change would do. `tasks` have work on them, and `examined` of these were read.

    A label is lost if its task reopens or is dropped, and changed if its mean is another one. `annotations_before` and
    `annotations_after` are still wanted by open tasks.
    """

    tasks: int
    examined: int
    reopened: Effect
    completed: Effect
    dropped: Effect
    kept_again: Effect
    labels_lost: Effect
    labels_gained: Effect
    labels_changed: Effect
    annotations_before: Effect
    annotations_after: Effect

    @property
    def is_exact(self) -> bool:
        return self.examined == self.tasks

    @property
    def changes_nothing(self) -> bool:
        of_labels = (self.labels_lost, self.labels_gained, self.labels_changed)
        effects = (self.reopened, self.completed, self.dropped, self.kept_again, *of_labels)
        return self.annotations_before == self.annotations_after and not any(effect.number for effect in effects)


EFFECTS = ("reopened", "completed", "dropped", "kept_again", "labels_lost", "labels_gained", "labels_changed")
_WANTED = ("annotations_before", "annotations_after")


def protocol_preview(project: Project, candidate: Project) -> ProtocolPreview:
    """Compares what is stored of the project with what the candidate's numbers would make of it."""
    numbers = _begun_tasks(project)
    if is_exact := numbers is not None:
        assert numbers is not None
        tasks = len(numbers)
    else:
        tasks, numbers = _how_many_begun(project), _sample(project)
    facts = _facts(numbers, rules=Rules.of(candidate))
    effects = {name: _effect([fact[name] for fact in facts], tasks, is_exact) for name in (*EFFECTS, *_WANTED)}
    untouched = project.tasks.open().filter(begun=False, adjudicated=False).count()
    for name, base in zip(_WANTED, (project.base_annotators, candidate.base_annotators), strict=True):
        effects[name] = Effect(effects[name].number + untouched * base, effects[name].margin)
    return ProtocolPreview(tasks=tasks, examined=len(numbers), **effects)


def _effect(values: Sequence[int], tasks: int, is_exact: bool) -> Effect:
    if is_exact or len(values) < 2:
        return Effect(sum(values))
    # The correction for a finite population: a sample of nearly all tasks is nearly exact.
    missing = sqrt(max(tasks - len(values), 0) / max(tasks - 1, 1))
    margin = _NORMAL_95 * sqrt(variance(values) / len(values)) * missing
    return Effect(round(fmean(values) * tasks), ceil(margin * tasks))


# Which tasks are read --------------------------------------------------------------------------------------


def _begun_tasks(project: Project) -> list[int] | None:
    """Returns the ids of all tasks with work on them, or None if there are more than EXACT."""
    # Each read follows an index. An open task without room that is not complete has a lease on it.
    begun = project.tasks.order_by()
    reads = (
        begun.filter(state=Task.State.COMPLETE).values_list("pk", flat=True),
        begun.filter(_IN_LINE).values_list("pk", flat=True),
        Assignment.objects.leased()
        .filter(task__project=project, task__state=Task.State.OPEN)
        .values_list("task", flat=True),
    )
    numbers: set[int] = set()
    for read in reads:
        numbers |= set(read[: EXACT + 1])
        if len(numbers) > EXACT:
            return None
    return sorted(numbers)


def _how_many_begun(project: Project) -> int:
    tasks, leased = project.tasks.order_by(), Assignment.objects.leased().order_by()
    full = leased.filter(task__project=project, task__state=Task.State.OPEN, task__open_slots=0)
    return (
        tasks.filter(state=Task.State.COMPLETE).count()
        + tasks.filter(_IN_LINE).count()
        + full.values("task").distinct().count()
    )


def _sample(project: Project) -> list[int]:
    """Draws ids between the project's first and last task: each task is as likely to be found as any other."""
    ends = project.tasks.aggregate(first=Min("pk"), last=Max("pk"))
    if ends["first"] is None:
        return []
    among = range(ends["first"], ends["last"] + 1)
    # Without a seed of its own, so that a second look is a second sample.
    probes = random.sample(among, min(MOST_PROBES, len(among)))
    found: list[int] = []
    for start in range(0, len(probes), SAMPLE * 2):
        chosen = project.tasks.filter(_BEGUN, pk__in=probes[start : start + SAMPLE * 2])
        found += chosen.order_by().values_list("pk", flat=True)
        if len(found) >= SAMPLE:
            break
    return sorted(random.sample(found, min(SAMPLE, len(found))))


# What becomes of them --------------------------------------------------------------------------------------


def _facts(numbers: Sequence[int], *, rules: Rules) -> list[dict[str, int]]:
    """Returns for each task whether it would reopen, be dropped and so on, and how many labels would change."""
    tasks = list(Task.objects.filter(pk__in=numbers).order_by("pk").defer("conversation", "metadata"))
    stored = {task.pk: (task.state, task.slots_wanted - task.done) for task in tasks}
    # The means of the annotators' labels that count, by task and response.
    labels: dict[int, dict[int, LabelValues]] = {}
    in_force = Label.objects.in_force().filter(source=Label.Source.CONSENSUS, response__task__in=numbers)
    for pk, response, *values in in_force.values_list("response__task", "response", "means", "segment_means"):
        labels.setdefault(pk, {})[response] = (values[0], values[1])
    standing_of, outcomes = computed(tasks, rules=rules)
    facts = []
    for task in tasks:
        result, standing = outcomes.get(task), standing_of[task.pk]
        was_complete, is_complete = stored[task.pk][0] == Task.State.COMPLETE, task.state == Task.State.COMPLETE
        before = labels.get(task.pk, {})
        # A reviewer's labels stand whatever the annotators' say.
        applies = result is not None and not result.drop_reason and not task.adjudicated
        after = agreed_values(result) if result is not None and applies else {}
        now_dropped = result is not None and bool(result.drop_reason)
        facts.append(
            {
                "reopened": was_complete and not is_complete,
                "completed": is_complete and not was_complete,
                "dropped": now_dropped and not standing.was_dropped,
                "kept_again": standing.was_dropped and result is not None and not now_dropped,
                "labels_lost": len(before.keys() - after.keys()),
                "labels_gained": len(after.keys() - before.keys()),
                "labels_changed": sum(before[response] != after[response] for response in before.keys() & after.keys()),
                "annotations_before": 0 if was_complete else max(stored[task.pk][1], 0),
                "annotations_after": 0 if is_complete else max(task.slots_wanted - task.done, 0),
            }
        )
    return facts
