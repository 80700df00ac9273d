"""Skips and reports of tasks, and the quarantine in which a task waits for a manager's decision."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import F, Q
from django.utils.translation import gettext as _

from annotator.infrastructure.db.retries import in_transaction
from annotator.infrastructure.db.storable_text import check_written
from annotator.models import Assignment, Draft, Project, Report, Skip, SkipReason, Tally, Task
from annotator.reading.assignment_rows import locked
from annotator.stages import consensus
from annotator.stages.annotation.recorded_refusals import Refused, record
from annotator.stages.assignment import expiry, free_slot, passed_lately, require_holding_or_at_work
from annotator.stages.pii import quotations

UNDO_FOR = timedelta(seconds=10)
ON_THE_WAY = timedelta(seconds=5)
"""How long an undo that was clicked in the last of those seconds may take to arrive."""


class TooMany(Refused):
    """The annotator has skipped or set aside more tasks than honest work would."""

    status = 429
    code = "too_many"


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
    """Skips the task. PII takes it from everyone until a manager decides; other reasons concern this annotator only.

    With PII the annotator may mark what is personal: detected spans by id, and quotes of the task's texts. Somebody who
    finds PII after skipping for another reason, or after rating the task, skips it again; that withdraws the rating.
    A skip that is sent again returns the stored one.

    Raises:
        Refused: it has been rated already, and the reason is another than PII.
        Refusal: the annotator is excluded or paused, and does not hold the task.
        TooMany: they have skipped, or set aside, too many tasks.
        NotInTheText, MarksWithoutReason (both of pii.quotations): the marks do not fit the texts or the reason.
    """
    check_written(note, "note")
    if (spans or quotes) and reason != SkipReason.PII:
        raise quotations.MarksWithoutReason
    assignment = locked(assignment_id)
    earlier = assignment.skips.order_by("created_at", "pk").last()
    if assignment.state == Assignment.State.SUBMITTED and reason != SkipReason.PII:
        text = _("You have already rated this task. You can now skip it only for personal information.")
        raise Refused(text)
    if earlier and (reason != SkipReason.PII or assignment.skips.filter(reason=SkipReason.PII).exists()):
        return earlier
    require_holding_or_at_work(assignment)
    if reason == SkipReason.PII:
        _refuse_setting_everything_aside(assignment)
    if assignment.state == Assignment.State.SUBMITTED:
        _withdraw(assignment)
    elif assignment.state != Assignment.State.SKIPPED:
        # Whoever skips one task after the other only reads them.
        if passed_lately(assignment, state=Assignment.State.SKIPPED, now=now) >= settings.SKIPS_AN_HOUR:
            text = _("You have skipped %(number)s tasks in the last hour. Rate this one, or continue later.")
            raise TooMany(text % {"number": settings.SKIPS_AN_HOUR})
        _let_go(assignment, Assignment.State.SKIPPED)
    if reason == SkipReason.PII:
        quotations.mark(assignment.task, spans=spans, quotes=quotes, by=assignment.annotator, now=now)
        _quarantine(assignment.task)
    consensus.settle([assignment.task], project=assignment.task.project, now=now)
    record("task.skipped", assignment.task, reason=reason)
    return Skip.objects.create(assignment=assignment, reason=reason, note=note, created_at=now)


def _refuse_setting_everything_aside(assignment: Assignment) -> None:
    """Raises TooMany for somebody who has set OPEN_REPORTS tasks aside that nobody has decided on.

    One annotator alone must not take all tasks from the others.
    """
    project_work = Assignment.objects.filter(
        annotator=assignment.annotator_id, task__project=assignment.task.project_id
    )
    waiting = project_work.filter(task__state=Task.State.QUARANTINED).exclude(pk=assignment.pk)
    set_aside = Q(reports__decision="") | Q(skips__reason=SkipReason.PII)
    # distinct(): the joins return an assignment once for each of its reports and skips.
    if waiting.filter(set_aside).distinct().count() >= settings.OPEN_REPORTS:
        text = _(
            "%(number)s tasks that you set aside are waiting for a manager's decision. Ask your manager to look at "
            "them. Until then, skip this task for another reason."
        )
        raise TooMany(text % {"number": settings.OPEN_REPORTS})


@in_transaction
def undo_skip(assignment_id: int, *, now: datetime, ago: timedelta = timedelta()) -> Assignment:
    """Takes a skip back: the task is leased to the annotator again, with its draft. It was asked for `ago`.

    Raises:
        Refused: it is too late, the skip withdrew a rating, or others have the task or have set it aside by now.
        Refusal: the annotator is excluded or paused.
    """
    assignment = locked(assignment_id)
    task, skipped = assignment.task, assignment.skips.order_by("created_at", "pk").last()
    if skipped is None or assignment.state != Assignment.State.SKIPPED:
        raise Refused(_("This task is not skipped, so there is nothing to undo."))
    if now - ago > skipped.created_at + UNDO_FOR + ON_THE_WAY:
        raise Refused(_("It is too late to undo the skip."))
    if assignment.annotations.exists():
        raise Refused(_("This skip withdrew your rating. A manager decides what happens to the task."))
    require_holding_or_at_work(assignment)
    assignment.skips.all().delete()
    quotations.unmark(task, by=assignment.annotator)
    _bring_back(task)
    if not _lease_again(assignment, now):
        raise Refused(_("The skip can no longer be undone: others now have this task, or it has been set aside."))
    consensus.settle([task], project=task.project, now=now)
    record("task.unskipped", task)
    return assignment


@in_transaction
def undo_report(assignment_id: int, *, now: datetime, ago: timedelta = timedelta()) -> Assignment:
    """Takes a report back: the task is in use again, and leased to an annotator who had not rated it.

    It was asked for `ago`, by somebody whose browser had no network since.

    Raises:
        Refused: it is too late, a manager has decided, or others have the task or have set it aside by now.
        Refusal: the annotator is excluded or paused.
    """
    assignment = locked(assignment_id)
    task, reported = assignment.task, assignment.reports.filter(decision="").first()
    if reported is None:
        raise Refused(_("This task has no report of yours that waits for a decision, so there is nothing to undo."))
    if now - ago > reported.created_at + UNDO_FOR + ON_THE_WAY:
        raise Refused(_("It is too late to undo the report."))
    require_holding_or_at_work(assignment)
    reported.delete()
    _bring_back(task)
    if assignment.state == Assignment.State.RELEASED and not _lease_again(assignment, now):
        raise Refused(_("The report can no longer be undone: others now have this task, or have set it aside."))
    consensus.settle([task], project=task.project, now=now)
    record("task.unreported", task)
    return assignment


def _bring_back(task: Task) -> None:
    """Puts a quarantined task into use again, unless others have set it aside as well."""
    skips = Skip.objects.filter(assignment__task=task, reason=SkipReason.PII)
    reports = Report.objects.filter(assignment__task=task, decision="")
    if task.state == Task.State.QUARANTINED and not skips.exists() and not reports.exists():
        task.state = task.state_in_use()
        task.save(update_fields=["state"])


def _lease_again(assignment: Assignment, now: datetime) -> bool:
    """Gives a task back to the annotator who has let it go; returns whether it has room and is in use."""
    task = assignment.task
    slot = free_slot(task)
    if slot is None or task.state not in (Task.State.OPEN, Task.State.GOLD):
        return False
    assignment.state, assignment.slot = Assignment.State.LEASED, slot
    assignment.leased_at, assignment.lease_expires_at, assignment.shift = now, expiry(task.project, now), None
    assignment.save(update_fields=["state", "slot", "leased_at", "lease_expires_at", "shift"])
    return True


@in_transaction
def report(assignment_id: int, *, category: str, note: str = "", now: datetime) -> Report:
    """Reports unsafe content and takes the task from everyone until a manager decides. A finished rating stays.

    A second report of the annotator replaces the first one while that is undecided.

    Raises:
        Refusal: the annotator is excluded or paused, and does not hold the task.
        TooMany: they have set too many tasks aside that still wait for a decision.
    """
    check_written(note, "note")
    assignment = locked(assignment_id)
    require_holding_or_at_work(assignment)
    _refuse_setting_everything_aside(assignment)
    if assignment.state == Assignment.State.LEASED:
        _let_go(assignment, Assignment.State.RELEASED)
    _quarantine(assignment.task)
    consensus.settle([assignment.task], project=assignment.task.project, now=now)
    record("task.reported", assignment.task, category=category)
    unsafe, _ = Report.objects.update_or_create(
        assignment=assignment, decision="", defaults={"category": category, "note": note, "created_at": now}
    )
    return unsafe


def _let_go(assignment: Assignment, state: str) -> None:
    assignment.state = state
    assignment.slot = None
    assignment.save(update_fields=["state", "slot"])


def _withdraw(assignment: Assignment) -> None:
    """Withdraws a submitted rating. Its row stays but is no longer current; so does what a gold task measured by it."""
    assignment.annotations.current().update(is_current=False)
    _let_go(assignment, Assignment.State.SKIPPED)
    tallies = Tally.objects.filter(annotator=assignment.annotator_id, project=assignment.task.project_id)
    tallies.update(done=F("done") - 1)
    Draft.objects.filter(assignment=assignment).delete()
    record("annotation.withdrawn", assignment.task)


def _quarantine(task: Task) -> None:
    """Takes the task out of work. A gold task stays in use: annotators must not get rid of what measures them."""
    if task.state not in (Task.State.RETIRED, Task.State.GOLD):
        task.state = Task.State.QUARANTINED
        task.save(update_fields=["state"])


@in_transaction
def decide_quarantine(task_id: int, *, safe_to_use: bool, now: datetime) -> Task:
    """Carries out a manager's decision on a quarantined task: back into use, or retired for good.

    Raises:
        Refused: the task is not in quarantine any more.
    """
    task = Task.objects.select_for_update().select_related("project").get(pk=task_id)
    if task.state != Task.State.QUARANTINED:
        text = _("%(task)s is no longer set aside. Open the task to see what was decided.")
        raise Refused(text % {"task": task})
    decide_quarantined([task], project=task.project, safe_to_use=safe_to_use, now=now)
    record("task.released" if safe_to_use else "task.retired", task)
    return task


def decide_quarantined(
    tasks: Sequence[Task], *, project: Project, safe_to_use: bool, now: datetime
) -> Mapping[int, list[int]]:
    """Decides about quarantined tasks whose row locks the caller holds; returns the ids of their reports, by task."""
    reports: dict[int, list[int]] = {task.pk: [] for task in tasks}
    undecided = Report.objects.filter(assignment__task__in=reports, decision="")
    for report, task_id in undecided.values_list("pk", "assignment__task"):
        reports[task_id].append(report)
    for task in tasks:
        task.state = task.state_in_use() if safe_to_use else Task.State.RETIRED
    decision = Report.Decision.DISMISSED if safe_to_use else Report.Decision.UPHELD
    undecided.update(decision=decision)
    consensus.settle(tasks, project=project, now=now)
    if safe_to_use:
        consensus.put_in_force(list(reports), now=now)
    return reports
