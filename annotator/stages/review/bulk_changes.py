"""Changes many tasks at once, and undoes that: their priority, retiring, bringing back, and quarantine decisions.

The BulkChange row is the truth. Its tasks are noted with it, and taken batch by batch in short transactions; what a
killed worker left is found again. Undoing puts back every task that still is as the change left it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import F, QuerySet
from django.db.models.expressions import RawSQL
from django.utils.translation import gettext as _

from annotator.infrastructure import audit, jobs
from annotator.infrastructure.background import heartbeats, messages
from annotator.infrastructure.db import locks
from annotator.infrastructure.db.retries import in_transaction
from annotator.infrastructure.db.statements import Statement
from annotator.infrastructure.refusals import Refusal
from annotator.infrastructure.web.numbers import number
from annotator.models import Assignment, BulkChange, ChangedTask, Gold, Label, Project, Report, Task, User
from annotator.reading.in_use import require_in_use
from annotator.reading.search.criteria import MOST_TASKS
from annotator.stages import annotation, consensus

AT_ONCE = 200
SYNC_LIMIT = 1_000
"""The most tasks that the caller waits for; more are left to the light worker."""
PRIORITIES = range(-1000, 1001)
"""As in an import."""

Action = BulkChange.Action
_APPLIES_TO: Mapping[str, tuple[str, ...]] = {
    Action.PRIORITY: (Task.State.OPEN, Task.State.COMPLETE, Task.State.QUARANTINED, Task.State.RETIRED),
    Action.RETIRE: (Task.State.OPEN, Task.State.COMPLETE),
    Action.REOPEN: (Task.State.RETIRED,),
    Action.RELEASE: (Task.State.QUARANTINED,),
    Action.UPHOLD: (Task.State.QUARANTINED,),
}
"""The states in which a task can be changed so. Gold tasks never are: they measure annotators."""
_LEAVES: Mapping[str, tuple[str, ...]] = {
    Action.PRIORITY: _APPLIES_TO[Action.PRIORITY],
    Action.RETIRE: (Task.State.RETIRED,),
    Action.REOPEN: (Task.State.OPEN, Task.State.COMPLETE),
    Action.RELEASE: (Task.State.OPEN, Task.State.COMPLETE),
    Action.UPHOLD: (Task.State.RETIRED,),
}
"""The states in which it leaves them. A task in another one by now has been changed since."""
_IN_USE = (Task.State.OPEN, Task.State.COMPLETE)


@dataclass(frozen=True)
class BulkChangePreview:
    """What a bulk change would do: tasks by what becomes of them, labels that go or come, people at one of the tasks.

    `chosen` tasks are `changing` or stay as they are, because the action does not apply to them. `labels` counts the
    labels that the exports would lose or, for what brings tasks back, gain.
    """

    chosen: int
    changing: int
    labels: int
    leases: int

    @property
    def staying(self) -> int:
        return self.chosen - self.changing


def bulk_change_preview(
    project: Project, tasks: Sequence[int], *, action: str, priority: int | None = None
) -> BulkChangePreview:
    """Counts what the change would do, and changes nothing. Raises as `change_many`, unless nothing would change."""
    _require_possible(tasks, action, priority)
    chosen = _of_project(project, tasks)
    changing = _applicable(chosen, action, priority)
    leases = labels = 0
    if action != Action.PRIORITY:
        labels = Label.objects.in_force_while_in_use().filter(response__task__in=changing).count()
        leases = Assignment.objects.leased().filter(task__in=changing).count()
    return BulkChangePreview(chosen.count(), changing.count(), labels, leases)


def change_many(
    project: Project, tasks: Sequence[int], *, action: str, priority: int | None = None, by: User, now: datetime
) -> BulkChange:
    """Changes the tasks with these ids at once or, if they are many, in the background. `finished_at` says when.

    Tasks of other projects and tasks that measure annotators are left out.

    Raises:
        Refusal: the action applies to none of the tasks.
        Refusal: see there.
        Refusal: the project is archived.
        Refusal: there are too many tasks to be waited for, and no light worker is listening.
    """
    _require_possible(tasks, action, priority)
    is_large = len(tasks) > SYNC_LIMIT
    if is_large:
        # Refused before the change is stored, as nobody would carry it out.
        heartbeats.require("light")
    change = _begin(project, tasks, action=action, priority=priority, by=by, now=now)
    return _go_on(change, is_large=is_large, now=now)


def undo(change: BulkChange, *, now: datetime) -> BulkChange:
    """Puts the tasks back that still are as the change left them; those that somebody has changed since stay.

    Raises:
        Refusal: it is under way, or undone.
        Refusal: the project is archived.
        Refusal: as for `change_many`.
    """
    is_large = change.changed > SYNC_LIMIT
    if is_large:
        heartbeats.require("light")
    return _go_on(_begin_undoing(change, now=now), is_large=is_large, now=now)


def finish(change_id: int, *, now: datetime) -> BulkChange | None:
    """Carries out, or undoes, what is left of a change. It may be stopped at any point and repeated."""
    with locks.waiting_session_lock("bulk change", change_id):
        change = BulkChange.objects.select_related("project", "by").filter(pk=change_id).first()
        if change and change.finished_at is None:
            _each_batch(change, ChangedTask.objects.filter(change=change, applied=None), _apply, now=now)
            BulkChange.objects.filter(pk=change_id).update(finished_at=now)
        if change and change.undo_asked_at and change.undone_at is None:
            left = ChangedTask.objects.filter(change=change, applied=True, put_back=None)
            _each_batch(change, left, _put_back, now=now)
            BulkChange.objects.filter(pk=change_id).update(undone_at=now)
    return BulkChange.objects.select_related("project", "by").filter(pk=change_id).first()


def finish_all(*, now: datetime) -> int:
    """Finishes the changes during which a worker was stopped; returns how many there were."""
    left = BulkChange.objects.unfinished().filter(project__deleted_at=None)
    return jobs.finish_left("finish_bulk_changes", left, lambda change: bool(finish(change.pk, now=now)))


# Choosing --------------------------------------------------------------------------------------------------


def _require_possible(tasks: Sequence[int], action: str, priority: int | None) -> None:
    if len(tasks) > MOST_TASKS:
        text = _("At most %(most)s tasks are changed at once. Add a filter that selects fewer.")
        raise Refusal(text % {"most": number(MOST_TASKS, 0)}, code="too_many_tasks", status=422)
    if (priority is None) == (action == Action.PRIORITY):
        raise Refusal(
            _("Write the new priority.") if priority is None else "Only the action `priority` takes a priority.",
            code="bad_priority",
            status=400,
        )
    if priority is not None and priority not in PRIORITIES:
        text = _("A priority is a whole number from %(least)s to %(most)s.")
        raise Refusal(text % {"least": PRIORITIES[0], "most": PRIORITIES[-1]}, code="bad_priority", status=400)


def _of_project(project: Project, tasks: Sequence[int]) -> QuerySet[Task]:
    chosen = RawSQL("SELECT unnest(%s::bigint[])", [list(tasks)])
    return Task.objects.filter(project=project, pk__in=chosen).exclude(state=Task.State.GOLD)


def _applicable(tasks: QuerySet[Task], action: str, priority: int | None) -> QuerySet[Task]:
    """Selects the tasks that the action would change."""
    changing = tasks.filter(state__in=_APPLIES_TO[action])
    return changing if priority is None else changing.exclude(priority=priority)


@in_transaction
def _begin(
    project: Project, tasks: Sequence[int], *, action: str, priority: int | None, by: User, now: datetime
) -> BulkChange:
    """Stores the change with all of its tasks."""
    require_in_use(project)
    chosen = _of_project(project, tasks)
    if not _applicable(chosen, action, priority).exists():
        raise Refusal(_("None of these tasks is in a state in which this would change it."), code="nothing_to_change")
    ids = sorted(chosen.values_list("pk", flat=True))
    change = BulkChange.objects.create(
        project=project, action=action, priority=priority, by=by, made_at=now, chosen=len(ids)
    )
    _NOTE_TASKS.run(change=change.pk, tasks=ids)
    details = {} if priority is None else {"priority": priority}
    audit.record("bulk_change.made", str(change), project=project, tasks=len(ids), **details)
    return change


_NOTE_TASKS = Statement(
    """
    INSERT INTO annotator_changedtask (change_id, task_id, state, priority, reports)
    SELECT %(change)s, unnest(%(tasks)s::bigint[]), '', 0, '{}'
    """,
    prepared=False,
)


@in_transaction
def _begin_undoing(change: BulkChange, *, now: datetime) -> BulkChange:
    change = BulkChange.objects.select_for_update(of=("self",)).select_related("project").get(pk=change.pk)
    require_in_use(change.project)
    if change.undo_asked_at:
        raise Refusal(_("This change has been undone already."), code="cannot_be_undone")
    if change.finished_at is None:
        raise Refusal(
            _("This change is still being carried out. Undo it once it has finished."), code="cannot_be_undone"
        )
    change.undo_asked_at = now
    change.save(update_fields=["undo_asked_at"])
    audit.record("bulk_change.undone", str(change), project=change.project, tasks=change.changed)
    return change


def _go_on(change: BulkChange, *, is_large: bool, now: datetime) -> BulkChange:
    """Carries out at once what concerns few tasks; the caller has asked for a light worker where they are many."""
    if is_large:
        messages.send_on_commit("annotator.tasks.finish_bulk_changes")
        return change
    return finish(change.pk, now=now) or change


# Batch by batch --------------------------------------------------------------------------------------------

Batch = Callable[[BulkChange, Sequence[int], datetime], None]


def _each_batch(change: BulkChange, left: QuerySet[ChangedTask], batch: Batch, *, now: datetime) -> None:
    # In the order of their ids, in which every other stage locks tasks.
    waiting = left.order_by("task").values_list("task", flat=True)
    while numbers := list(waiting[:AT_ONCE]):
        batch(change, numbers, now)


@in_transaction
def _apply(change: BulkChange, numbers: Sequence[int], now: datetime) -> None:
    tasks = Task.objects.locked(numbers)
    sets_priority = change.action == Action.PRIORITY
    going = [
        task
        for task in tasks
        if task.state in _APPLIES_TO[change.action] and not (sets_priority and task.priority == change.priority)
    ]
    noted = {task.pk: ChangedTask(state=task.state, priority=task.priority) for task in going}
    _carry_out(change, going, noted, now)
    rows = ChangedTask.objects.filter(change=change, task__in=numbers)
    for row in rows:
        before = noted.get(row.task_id)
        row.applied = before is not None
        if before:
            row.state, row.priority, row.reports = before.state, before.priority, before.reports
    ChangedTask.objects.bulk_update(rows, ["applied", "state", "priority", "reports"])
    BulkChange.objects.filter(pk=change.pk).update(changed=F("changed") + len(going))


def _carry_out(change: BulkChange, tasks: Sequence[Task], noted: Mapping[int, ChangedTask], now: datetime) -> None:
    if change.action == Action.PRIORITY:
        Task.objects.filter(pk__in=[task.pk for task in tasks]).update(priority=change.priority)
    elif change.action in (Action.RELEASE, Action.UPHOLD):
        decided = annotation.decide_quarantined(
            tasks, project=change.project, safe_to_use=change.action == Action.RELEASE, now=now
        )
        for task, reports in decided.items():
            noted[task].reports = reports
    elif change.action == Action.RETIRE:
        _set_states(tasks, dict.fromkeys((task.pk for task in tasks), Task.State.RETIRED), change.project, now)
    else:
        _set_states(tasks, _states_in_use(tasks), change.project, now)


@in_transaction
def _put_back(change: BulkChange, numbers: Sequence[int], now: datetime) -> None:
    tasks = {task.pk: task for task in Task.objects.locked(numbers)}
    rows = list(ChangedTask.objects.filter(change=change, task__in=numbers, applied=True, put_back=None))
    for row in rows:
        task = tasks[row.task_id]
        same = change.action != Action.PRIORITY or task.priority == change.priority
        row.put_back = same and task.state in _LEAVES[change.action]
    back = [row for row in rows if row.put_back]
    if change.action == Action.PRIORITY:
        for row in back:
            tasks[row.task_id].priority = row.priority
        Task.objects.bulk_update([tasks[row.task_id] for row in back], ["priority"])
    else:
        undecided = [report for row in back for report in row.reports]
        Report.objects.filter(pk__in=undecided).update(decision="")
        again = [tasks[row.task_id] for row in back]
        # Open or complete: whichever its ratings make it now.
        in_use = _states_in_use(again)
        states = {row.task_id: in_use[row.task_id] if row.state in _IN_USE else row.state for row in back}
        _set_states(again, states, change.project, now)
    ChangedTask.objects.bulk_update(rows, ["put_back"])
    BulkChange.objects.filter(pk=change.pk).update(put_back=F("put_back") + len(back))


def _set_states(tasks: Sequence[Task], states: Mapping[int, str], project: Project, now: datetime) -> None:
    for task in tasks:
        task.state = states[task.pk]
    consensus.settle(tasks, project=project, now=now)
    consensus.put_in_force([task.pk for task in tasks if task.state in _IN_USE], now=now)


def _states_in_use(tasks: Sequence[Task]) -> Mapping[int, str]:
    gold = set(Gold.objects.filter(task__in=tasks).values_list("task", flat=True))
    return {task.pk: Task.State.GOLD if task.pk in gold else Task.State.OPEN for task in tasks}
