"""Who rates what next: leases on tasks, one slot an annotator."""

import time
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from annotator.infrastructure.db.retries import in_transaction
from annotator.infrastructure.db.statements import Statement
from annotator.models import Assignment, Membership, Project, Response, Task, User
from annotator.reading.assignment_rows import ONE_CLAIM_AT_A_TIME
from annotator.stages.assignment import task_choice
from annotator.stages.assignment.entitlement import REASONS, Entitlement
from annotator.stages.assignment.leases import (
    WITH_RESPONSES,
    expiry,
    in_order,
    make_room,
    reclaim_expired,
    responses_in_order,
    responses_of,
    shuffled,
    task_with_responses,
)
from annotator.stages.assignment.task_choice import HAD_BEFORE, LINE, NEXT_IN_LINE, Candidate, Picked, QueuePosition

PAUSES = (0.02, 0.05, 0.1, 0.2)
"""Seconds between the looks at tasks that others have locked, mostly by a claim or a submission of theirs."""


@dataclass(frozen=True)
class Claim:
    """A leased task with its responses as the annotator sees them, or the reason (a key of REASONS) for none.

    `locked` is true if there is a task for them, which others have locked for a moment.
    """

    assignment: Assignment | None
    responses: list[Response] = field(default_factory=list)
    reason: str = ""
    locked: bool = False

    @property
    def explanation(self) -> str:
        return str(REASONS[self.reason]) if self.reason else ""


@dataclass(frozen=True)
class Situation:
    """How the annotator stands in the project: their membership, how many tasks they have rated, what they have begun.

    `looked` is how far down the line of begun tasks they have looked, `own` the assignment that is leased to them, and
    `half_done` the tasks of which they have a draft but no lease. `leases_ran_out` is true if any lease of any
    project has expired without being reclaimed. The task of `line` is locked.
    """

    member: Membership | None
    excluded: bool
    done: int
    looked: int
    own: int | None
    half_done: list[int]
    leases_ran_out: bool
    line: QueuePosition

    def entitlement(self, project: Project) -> Entitlement:
        """Returns what may bar the annotator in the project."""
        member = self.member
        paused = member.pause_reason if member and member.paused_at else None
        return Entitlement(project, self.excluded, paused, member.quota if member else None, self.done)


def claim(project: Project, annotator: User, *, now: datetime) -> Claim:
    """Leases the annotator's own unfinished task, else the best open one that they have not had yet.

    In a project with gold tasks, one in about `gold_every` is a gold task instead.
    """
    claimed = _claim_at_once(project, annotator, now=now)
    # Between the transactions, so that nobody waits for a lock of somebody who is looking.
    for pause in PAUSES:
        if not claimed.locked:
            break
        time.sleep(pause)
        claimed = _claim_at_once(project, annotator, now=now)
    return claimed


@in_transaction
def _claim_at_once(project: Project, annotator: User, *, now: datetime) -> Claim:
    one_claim_at_a_time(annotator)
    return next_task(project, annotator, now=now)


def next_task(project: Project, annotator: User, *, now: datetime) -> Claim:
    """Does what `claim` does at once, in a transaction that has already taken the lock of `one_claim_at_a_time`."""
    situation = situation_of(project, annotator, now=now)
    # Asked before anything bars them: people who are paused, or whose project is, finish what they have begun.
    # But what they hold ahead they have not.
    idle = bool(situation.entitlement(project).idle_reason())
    if not situation.excluded and (own := _renewed(situation.own, project, now, only_begun=idle)):
        return Claim(own, responses_in_order(own))
    return new_task(situation, project, annotator, now=now)


def new_task(
    situation: Situation, project: Project, annotator: User, *, now: datetime, shift: UUID | None = None
) -> Claim:
    """Leases a task that the annotator does not hold yet, ahead for the page `shift` if that is given.

    The transaction has taken the lock of `one_claim_at_a_time` before the situation was read.
    """
    entitlement = situation.entitlement(project)
    if barred := entitlement.idle_reason():
        return Claim(None, reason=barred)
    if situation.member and situation.member.lacks_test():
        return Claim(None, reason="not_qualified")
    if entitlement.has_filled_quota():
        return Claim(None, reason="quota")
    # Hardly ever true, so that most claims spare the statement.
    if situation.leases_ran_out:
        reclaim_expired(now=now)
    languages = tuple(situation.member.languages) if situation.member else ()
    candidate = Candidate(project.pk, annotator.pk, situation.looked, languages or None)
    half_done = task_choice.lock_one(situation.half_done) if situation.half_done else None
    picked = half_done or task_choice.pick(candidate, situation.line)
    if not picked:
        reason = why_nothing(candidate)
        return Claim(None, reason=reason, locked=reason == "leased_by_others" and task_choice.is_locked(candidate))
    if not half_done and (gold := task_choice.gold_instead(project, annotator)):
        make_room(gold)
        picked = Picked(gold.pk, [response.position for response in responses_of(gold)])
    return _lease(picked, project, annotator, now=now, shift=shift)


_LOCK = Statement(ONE_CLAIM_AT_A_TIME)


def one_claim_at_a_time(annotator: User) -> None:
    """Makes the annotator's other claims wait until this transaction ends.

    Without it a double click would lease two tasks, because neither transaction sees the lease of the other.
    """
    _LOCK.rows(annotator=annotator.pk)


# The newest task that is still leased to the annotator counts, even if its lease has expired: nobody has reclaimed it.
# What is held ahead comes after what has been shown, the oldest first.
# Next come tasks with a draft whose lease was reclaimed, so that people who return continue where they stopped.
_SITUATION = Statement(f"""
WITH standing AS MATERIALIZED (
    SELECT m.id, m.role, m.paused_at, m.pause_reason, m.qualified_at, m.quota, m.languages,
        m.tasks_ahead, CASE WHEN m.languages <> '{{}}' THEN m.languages::text[] || ''::text END AS spoken,
        coalesce(y.done, 0) AS done, coalesce(y.line, 0) AS line
    FROM (SELECT 1) AS one
    LEFT JOIN annotator_membership m ON m.user_id = %(annotator)s AND m.project_id = %(project)s
    LEFT JOIN annotator_tally y ON y.annotator_id = %(annotator)s AND y.project_id = %(project)s
), {NEXT_IN_LINE}
SELECT m.id, m.role, m.paused_at, m.pause_reason, m.qualified_at, m.quota, m.languages, m.tasks_ahead,
    EXISTS (SELECT FROM annotator_exclusion e WHERE e.project_id = %(project)s AND e.annotator_id = %(annotator)s),
    m.done, m.line,
    (SELECT s.id FROM annotator_assignment s JOIN annotator_task t ON t.id = s.task_id
     WHERE s.annotator_id = %(annotator)s AND s.state = 'leased' AND t.project_id = %(project)s
        AND t.state IN ('open', 'gold')
     ORDER BY s.shift IS NOT NULL, CASE WHEN s.shift IS NOT NULL THEN s.leased_at END,
        CASE WHEN s.shift IS NOT NULL THEN s.id END, s.leased_at DESC LIMIT 1),
    ARRAY(SELECT s.task_id FROM annotator_assignment s JOIN annotator_draft d ON d.assignment_id = s.id
     JOIN annotator_task t ON t.id = s.task_id
     WHERE s.annotator_id = %(annotator)s AND s.state = 'expired' AND t.project_id = %(project)s
     ORDER BY d.saved_at DESC LIMIT 5),
    EXISTS (SELECT FROM annotator_assignment s WHERE s.state = 'leased' AND s.lease_expires_at < %(now)s),
    {LINE}
FROM standing m
""")
# In the order in which _SITUATION selects them.
_MEMBER_FIELDS = ("id", "role", "paused_at", "pause_reason", "qualified_at", "quota", "languages", "tasks_ahead")


def situation_of(project: Project, annotator: User, *, now: datetime) -> Situation:
    """Reads how the annotator stands, and locks the begun task that comes next."""
    (row,) = _SITUATION.rows(**_values(project, annotator, now))
    values = dict(zip(_MEMBER_FIELDS, row, strict=False))
    member = Membership(**values, project=project, user=annotator) if values["id"] else None
    end = len(row) - len(QueuePosition._fields)
    return Situation(member, *(*row[len(_MEMBER_FIELDS) : end], QueuePosition(*row[end:])))


def _values(project: Project, annotator: User, now: datetime) -> dict[str, Any]:
    return {"project": project.pk, "annotator": annotator.pk, "now": now, "states": HAD_BEFORE}


def plans(project: Project, annotator: User, *, now: datetime) -> list[str]:
    """Returns what EXPLAIN says of the two reads that every claim may make: of the line, and of untouched tasks."""
    line = _SITUATION.plan(**_values(project, annotator, now))
    return [line, task_choice.untouched_plan(Candidate(project.pk, annotator.pk))]


def _renewed(assignment_id: int | None, project: Project, now: datetime, *, only_begun: bool) -> Assignment | None:
    """Extends the annotator's own lease; returns None if it was reclaimed a moment ago."""
    if assignment_id is None:
        return None
    # The UPDATE waits for whoever is reclaiming this lease and changes no row if they did. A read followed by a save
    # would hand out a task whose slot somebody else may have by now.
    leased = Assignment.objects.leased().filter(pk=assignment_id)
    if only_begun:
        leased = leased.filter(shift=None)
    if not leased.update(lease_expires_at=expiry(project, now), shift=None):
        return None
    own = leased.select_related("task").get()
    own.task.project = project
    return own


# Takes the lowest free slot of a locked task. It runs after the statement that took the lock, so it sees every slot
# committed before that. An annotator who let the task go before gets their earlier row back, and with it the order
# in which they saw the responses then: the UPDATE leaves response_order alone.
_LEASE = Statement(f"""
WITH free AS (
    SELECT min(number) AS slot FROM annotator_task t, generate_series(1, t.slots_wanted) AS number
    WHERE t.id = %(task)s AND NOT EXISTS (
        SELECT FROM annotator_assignment s WHERE s.task_id = t.id AND s.slot = number
    )
), taken AS (
    UPDATE annotator_task SET open_slots = open_slots - 1 WHERE id = %(task)s
), leased AS (
    INSERT INTO annotator_assignment
        (task_id, annotator_id, slot, state, response_order, leased_at, lease_expires_at, shift)
    SELECT %(task)s, %(annotator)s, slot, 'leased', %(order)s::smallint[], %(now)s, %(expires)s, %(shift)s FROM free
    ON CONFLICT (task_id, annotator_id) DO UPDATE SET slot = excluded.slot, state = excluded.state,
        leased_at = excluded.leased_at, lease_expires_at = excluded.lease_expires_at, shift = excluded.shift
    RETURNING id, slot, response_order
)
SELECT s.id, s.slot, s.response_order, {WITH_RESPONSES}
FROM leased s JOIN annotator_task t ON t.id = %(task)s LEFT JOIN annotator_response r ON r.task_id = t.id
ORDER BY r.position
""")


def _lease(picked: Picked, project: Project, annotator: User, *, now: datetime, shift: UUID | None) -> Claim:
    order, expires = shuffled(picked.positions, picked.task, annotator), expiry(project, now)
    rows = _LEASE.rows(task=picked.task, annotator=annotator.pk, now=now, expires=expires, order=order, shift=shift)
    number, slot, order = rows[0][:3]
    task, responses = task_with_responses([row[3:] for row in rows])
    task.project = project  # or Django would read the project again
    task.open_slots -= 1  # the statement reads the task as it was before
    leased = Assignment(
        pk=number,
        task=task,
        annotator=annotator,
        slot=slot,
        state=Assignment.State.LEASED,
        response_order=order,
        counts=True,
        shift=shift,
        leased_at=now,
        lease_expires_at=expires,
    )
    return Claim(leased, in_order(responses, order))


def why_nothing(candidate: Candidate) -> str:
    """Returns why there is no task for the candidate, as a key of REASONS."""
    tasks = Task.objects.filter(project=candidate.project).exclude(state=Task.State.GOLD)
    if not tasks.exists():
        return "empty"
    if not tasks.open().exists():
        return "all_done"
    remaining = tasks.open().untouched_by(candidate.annotator, states=tuple(task_choice.OUT_OF_REACH))
    if not remaining.exists():
        return "you_did_all"
    if candidate.languages and not remaining.filter(language__in=["", *candidate.languages]).exists():
        return "other_languages"
    return "leased_by_others"
