"""Leases the next tasks of an annotator ahead, so that their browser keeps them ready.

They count like any lease. Nobody holds more of them than an equal share of what is open, nor than their quota allows;
what a page does not need any more is open for others again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from annotator.infrastructure.db.retries import in_transaction
from annotator.infrastructure.db.statements import Statement
from annotator.models import Assignment, Membership, Project, User
from annotator.stages.assignment.claims import Claim, new_task, one_claim_at_a_time, situation_of
from annotator.stages.assignment.leases import expiry, freed, responses_in_order
from annotator.stages.assignment.task_choice import available_to


@dataclass(frozen=True)
class Ahead:
    """The leases that a page holds ahead: the ids of those it had, in their order, and then the new ones."""

    kept: Sequence[int] = ()
    new: Sequence[Claim] = field(default_factory=list)


def claims_of(held: Ahead) -> list[Claim]:
    """Reads the tasks of all leases that are held ahead, in their order."""
    rows = Assignment.objects.select_related("task__project__rubric").in_bulk(held.kept)
    kept = [rows[number] for number in held.kept if number in rows]
    return [*(Claim(mine, responses_in_order(mine)) for mine in kept), *held.new]


@in_transaction
def stock_up(project: Project, annotator: User, *, shift: UUID, shown: int | None, now: datetime) -> Ahead:
    """Renews the leases that the annotator holds ahead for the page `shift`, and takes more or ends some.

    The page shows the assignment `shown`, which is held ahead no more. Leases of another page of theirs become those of
    this one: a page that is loaded again goes on with what it had.
    """
    one_claim_at_a_time(annotator)
    held = _HOLD.rows(
        annotator=annotator.pk, project=project.pk, shift=shift, shown=shown, expires=expiry(project, now)
    )
    ahead = [assignment for assignment, is_shown, _ in sorted(held, key=lambda row: (row[2], row[0])) if not is_shown]
    situation = situation_of(project, annotator, now=now)
    is_barred = situation.entitlement(project).idle_reason() or (situation.member and situation.member.lacks_test())
    most = 0 if is_barred else _share(project, annotator, situation.member)
    if ahead[most:]:
        freed(_END.rows(assignments=ahead[most:]))
    new: list[Claim] = []
    while len(ahead) + len(new) < most:
        claimed = new_task(situation, project, annotator, now=now, shift=shift)
        if claimed.assignment is None:
            break
        new.append(claimed)
        situation = situation_of(project, annotator, now=now)
    return Ahead(ahead[:most], new)


# Tasks before assignments, and in their order, as everywhere: two transactions could deadlock otherwise.
_HELD = """
SELECT s.id FROM annotator_assignment s JOIN annotator_task t ON t.id = s.task_id
WHERE s.annotator_id = %(annotator)s AND s.state = 'leased' AND s.shift IS NOT NULL AND {which}
ORDER BY t.id FOR NO KEY UPDATE OF t, s
"""
_HOLD = Statement(f"""
WITH held AS ({_HELD.format(which="t.project_id = %(project)s AND t.state IN ('open', 'gold')")})
UPDATE annotator_assignment s SET lease_expires_at = %(expires)s,
    shift = CASE WHEN s.id = %(shown)s::bigint THEN NULL ELSE %(shift)s END
FROM held WHERE s.id = held.id RETURNING s.id, s.shift IS NULL, s.leased_at
""")
_ENDED = "UPDATE annotator_assignment s SET state = 'expired', slot = NULL, shift = NULL"
# Of rows that _HOLD has locked with their tasks.
_END = Statement(f"{_ENDED} WHERE s.id = ANY(%(assignments)s) RETURNING s.task_id", prepared=False)
_OF_SHIFT = "(s.shift = %(shift)s OR %(shift)s::uuid IS NULL) AND s.id <> ALL(%(but)s::bigint[])"
_LET_GO = Statement(f"""
WITH held AS ({_HELD.format(which=_OF_SHIFT)})
{_ENDED} FROM held WHERE s.id = held.id RETURNING s.task_id
""")
# The people who hold tasks of the project at this moment, but for one.
_OTHERS = Statement("""
SELECT count(DISTINCT s.annotator_id) FROM annotator_assignment s JOIN annotator_task t ON t.id = s.task_id
WHERE s.state = 'leased' AND t.project_id = %(project)s AND s.annotator_id <> %(annotator)s
""")


def _share(project: Project, annotator: User, member: Membership | None) -> int:
    """Returns how many tasks the annotator may hold ahead: as wanted, but never more than an equal share."""
    wanted = member.most_ahead() if member else project.tasks_ahead
    if not wanted:
        return 0
    others: int = _OTHERS.rows(project=project.pk, annotator=annotator.pk)[0][0]
    # With one more, as somebody may come who finds nothing otherwise.
    people = others + 2
    available, allowed = available_to(project, annotator, most=wanted * people)
    return min(wanted, available // people, wanted if allowed is None else allowed)


@in_transaction
def let_go(annotator: User, *, shift: UUID | None = None, but: Sequence[int] = ()) -> int:
    """Ends the leases that the annotator holds ahead, of every page or of `shift` alone; returns how many.

    What has been shown stays leased, which includes the assignments `but`. The tasks are open for others, and for the
    annotator.
    """
    return freed(_LET_GO.rows(annotator=annotator.pk, shift=shift, but=list(but)))
