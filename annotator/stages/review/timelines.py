"""What happened to a task, in the order of time: read from the rows that its work has left, in one statement."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from annotator.infrastructure.db.statements import Statement
from annotator.models import Task, User
from annotator.models.audit import TASK_DECISIONS

MOST = 500
"""The most events that are shown. A task has a few dozen."""


@dataclass(frozen=True)
class Event:
    """One thing that happened. What `detail` and `note` hold depends on `kind`.

    imported: file name; leased: the assignment's state now; expired; rated: revision, origin; skipped: reason, note;
    reported: category, note; decided: decision on a report; consensus: why it was dropped; verdict: decision, comment;
    settled: reason, comment; scanned; changed: the bulk change's action, the new priority; put_back: its action; or an
    action of the audit (TASK_DECISIONS), with the name of who did it in `actor`.
    """

    at: datetime
    kind: str
    who: User | None = None
    detail: str = ""
    note: str = ""
    actor: str = ""


# An empty response order marks an imported rating, which nobody ever held.
_EVENTS = Statement(
    """
    SELECT e.at, e.kind, e.person, u.username, e.detail, e.note, e.actor FROM (
        SELECT t.created_at AS at, 1 AS place, 'imported' AS kind, i.by_id AS person,
            coalesce(i.file_name, '') AS detail, '' AS note, '' AS actor
        FROM annotator_task t LEFT JOIN annotator_import i ON i.id = t.from_import_id WHERE t.id = %(task)s
        UNION ALL
        SELECT pii_scanned_at, 2, 'scanned', NULL, '', '', '' FROM annotator_task
        WHERE id = %(task)s AND pii_scanned_at IS NOT NULL
        UNION ALL
        SELECT leased_at, 3, 'leased', annotator_id, state, '', '' FROM annotator_assignment
        WHERE task_id = %(task)s AND response_order <> '{}'
        UNION ALL
        SELECT lease_expires_at, 4, 'expired', annotator_id, '', '', '' FROM annotator_assignment
        WHERE task_id = %(task)s AND state = 'expired'
        UNION ALL
        SELECT a.submitted_at, 5, 'rated', s.annotator_id, a.revision::text, a.origin, ''
        FROM annotator_annotation a JOIN annotator_assignment s ON s.id = a.assignment_id WHERE s.task_id = %(task)s
        UNION ALL
        SELECT k.created_at, 6, 'skipped', s.annotator_id, k.reason, k.note, ''
        FROM annotator_skip k JOIN annotator_assignment s ON s.id = k.assignment_id WHERE s.task_id = %(task)s
        UNION ALL
        SELECT r.created_at, 6, 'reported', s.annotator_id, r.category, r.note, r.decision
        FROM annotator_report r JOIN annotator_assignment s ON s.id = r.assignment_id WHERE s.task_id = %(task)s
        UNION ALL
        SELECT computed_at, 7, 'consensus', NULL, drop_reason, '', '' FROM annotator_consensus
        WHERE task_id = %(task)s
        UNION ALL
        SELECT v.made_at, 8, 'verdict', v.by_id, v.decision, v.comment, ''
        FROM annotator_verdict v JOIN annotator_assignment s ON s.id = v.assignment_id WHERE s.task_id = %(task)s
        UNION ALL
        SELECT made_at, 8, 'settled', by_id, reason, comment, '' FROM annotator_adjudication WHERE task_id = %(task)s
        UNION ALL
        SELECT b.made_at, 9, 'changed', b.by_id, b.action, coalesce(b.priority::text, ''), ''
        FROM annotator_changedtask c JOIN annotator_bulkchange b ON b.id = c.change_id
        WHERE c.task_id = %(task)s AND c.applied
        UNION ALL
        SELECT b.undo_asked_at, 10, 'put_back', NULL, b.action, '', ''
        FROM annotator_changedtask c JOIN annotator_bulkchange b ON b.id = c.change_id
        WHERE c.task_id = %(task)s AND c.put_back
        UNION ALL
        SELECT at, 9, action, NULL, '', '', actor FROM annotator_auditentry
        WHERE project_id = %(project)s AND subject = %(subject)s AND action IN {decisions}
    ) e LEFT JOIN annotator_user u ON u.id = e.person ORDER BY e.at, e.place LIMIT %(most)s
    """.replace("{decisions}", "('" + "', '".join(TASK_DECISIONS) + "')"),
    prepared=False,
)


def timeline(task: Task) -> Sequence[Event]:
    """Returns what happened to the task, the earliest first."""
    subject = f"task {task.external_id}"[:300]
    rows = _EVENTS.rows(task=task.pk, project=task.project_id, subject=subject, most=MOST)
    return [
        Event(at, kind, User(pk=person, username=username) if person else None, detail, note, actor)
        for at, kind, person, username, detail, note, actor in rows
    ]
