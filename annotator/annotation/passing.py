"""A task is passed by: skipped, reported, set aside until a manager decides."""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from django.utils.translation import gettext as _

from annotator import consensus, gold
from annotator.annotation.refused import Refused, record
from annotator.assignment import free_slot, locked
from annotator.models import Assignment, Report, Skip, SkipReason, Task
from annotator.pii import quoting
from annotator.retrying import in_transaction
from annotator.storable import check_written

UNDO_FOR = timedelta(seconds=10)
ON_THE_WAY = timedelta(seconds=5)
"""What an undo in the last of the ten seconds may take to arrive."""


@in_transaction
def skip(
    assignment_id: int,
    *,
    reason: str,
    note: str = "",
    spans: Collection[int] = (),
    quotes: Sequence[str] = (),
    now: datetime,
) -> Skip:
    """Passes the task by. PII takes it from everyone until a manager decides; the rest is for this person only.

    With PII the annotator may say what is personal: detected spans by id, and quotes of the task's texts.

    Raises:
        Refused: it has been rated already.
        pii.quoting.NotInTheText, pii.quoting.MarksWithoutReason: what is marked makes no sense.
    """
    check_written(note, "note")
    if (spans or quotes) and reason != SkipReason.PII:
        raise quoting.MarksWithoutReason
    assignment = locked(assignment_id)
    if assignment.state == Assignment.State.SUBMITTED:
        raise Refused(_("You have rated this task already, so it cannot be skipped."))
    if assignment.state == Assignment.State.SKIPPED:
        return assignment.skips.latest("created_at")
    _let_go(assignment, Assignment.State.SKIPPED)
    if reason == SkipReason.PII:
        quoting.mark(assignment.task, spans=spans, quotes=quotes, by=assignment.annotator, now=now)
        _quarantine(assignment.task)
    consensus.settle([assignment.task], project=assignment.task.project, now=now)
    record("task.skipped", assignment.task, reason=reason)
    return Skip.objects.create(assignment=assignment, reason=reason, note=note, created_at=now)


@in_transaction
def undo_skip(assignment_id: int, *, now: datetime) -> Assignment:
    """Takes a skip back: the task, with its draft, is the annotator's next one again.

    Raises:
        Refused: too late, or others have the task or have set it aside by now.
    """
    assignment = locked(assignment_id)
    task, skipped = assignment.task, assignment.skips.order_by("-created_at").first()
    if skipped is None or assignment.state != Assignment.State.SKIPPED:
        raise Refused(_("This task is not skipped, so there is nothing to undo."))
    if now > skipped.created_at + UNDO_FOR + ON_THE_WAY:
        raise Refused(_("It is too late to undo the skip."))
    skipped.delete()
    quoting.unmark(task, by=assignment.annotator)
    if task.state == Task.State.QUARANTINED and not _set_aside_by_others(task):
        task.state = task.state_in_use()
    if task.state == Task.State.GOLD:
        gold.make_room(task)
    slot = free_slot(task)
    if slot is None or task.state not in (Task.State.OPEN, Task.State.GOLD):
        raise Refused(_("The skip cannot be undone: by now others have this task, or it is set aside."))
    assignment.state, assignment.slot = Assignment.State.LEASED, slot
    assignment.leased_at, assignment.lease_expires_at = now, now + timedelta(minutes=task.project.lease_minutes)
    assignment.save(update_fields=["state", "slot", "leased_at", "lease_expires_at"])
    task.save(update_fields=["state"])
    consensus.settle([task], project=task.project, now=now)
    record("task.unskipped", task)
    return assignment


def _set_aside_by_others(task: Task) -> bool:
    skips = Skip.objects.filter(assignment__task=task, reason=SkipReason.PII)
    return skips.exists() or Report.objects.filter(assignment__task=task, decision="").exists()


@in_transaction
def report(assignment_id: int, *, category: str, note: str = "", now: datetime) -> Report:
    """Reports unsafe content and takes the task from everyone until a manager decides. A finished rating stays."""
    check_written(note, "note")
    assignment = locked(assignment_id)
    if assignment.state == Assignment.State.LEASED:
        _let_go(assignment, Assignment.State.RELEASED)
    _quarantine(assignment.task)
    consensus.settle([assignment.task], project=assignment.task.project, now=now)
    record("task.reported", assignment.task, category=category)
    found, _ = Report.objects.update_or_create(
        assignment=assignment, decision="", defaults={"category": category, "note": note, "created_at": now}
    )
    return found


def _let_go(assignment: Assignment, state: str) -> None:
    assignment.state = state
    assignment.slot = None
    assignment.save(update_fields=["state", "slot"])


def _quarantine(task: Task) -> None:
    if task.state != Task.State.RETIRED:
        task.state = Task.State.QUARANTINED
        task.save(update_fields=["state"])


@in_transaction
def decide_quarantine(task_id: int, *, safe_to_use: bool, now: datetime) -> Task:
    """A manager's word on a quarantined task: back into the queue, or retired for good."""
    task = Task.objects.select_for_update().select_related("project").get(pk=task_id)
    if task.state != Task.State.QUARANTINED:
        raise Refused(f"{task} is {task.state}, not quarantined.")
    task.state = task.state_in_use() if safe_to_use else Task.State.RETIRED
    task.save(update_fields=["state"])
    decision = Report.Decision.DISMISSED if safe_to_use else Report.Decision.UPHELD
    Report.objects.filter(assignment__task=task, decision="").update(decision=decision)
    consensus.settle([task], project=task.project, now=now)
    decided = "task.released" if safe_to_use else "task.retired"
    record(decided, task)
    return task
