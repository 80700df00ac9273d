"""A finished rating is stored, or revised while its task is open."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

from django.utils.translation import gettext as _

from annotator import consensus, gold
from annotator.annotation.completeness import check_complete
from annotator.annotation.content import Submission
from annotator.annotation.refused import Refused, record
from annotator.assignment import free_slot, locked
from annotator.assignment.holding import responses_of
from annotator.models import NEITHER_VALID, Annotation, Assignment, Origin, Task, Verdict
from annotator.retrying import in_transaction
from annotator.statements import Columns, Statement


@dataclass(frozen=True)
class Submitted:
    """The annotation that now stands for the assignment, and whether this call made the first one."""

    annotation: Annotation
    created: bool


@in_transaction
def submit(assignment_id: int, submission: Submission, *, now: datetime, origin: str = Origin.PERSON) -> Submitted:
    """Stores a finished rating: the same again changes nothing, another one is a revision while the task is open.

    A lease that ran out is no obstacle: the work takes a free slot, or is kept beside the slots.

    Raises:
        IncompleteRating: an answer is missing or off the scale.
        Refused: the task was skipped by this person, or is closed for edits.
    """
    assignment = locked(assignment_id)
    task = assignment.task
    check_complete(submission, project=task.project, responses=responses_of(task))
    current = _current(assignment)
    if current and current.content_hash == submission.content_hash():
        return Submitted(current, created=False)
    if current:
        _allow_revision(assignment)
        Annotation.objects.filter(pk=current.pk).update(is_current=False)
    else:
        _may_be_taken(assignment)
    revision = current.revision + 1 if current else 1
    annotation = _store(assignment, submission, revision=revision, now=now, origin=origin)
    if task.state == Task.State.GOLD and current is None:
        gold.judge(assignment, now=now)
    consensus.settle([task], project=task.project, now=now)
    record("annotation.revised" if current else "annotation.submitted", task, revision=revision)
    return Submitted(annotation, created=current is None)


_ANNOTATION = Columns(Annotation, "a")
_CURRENT = Statement(f"""
SELECT {_ANNOTATION} FROM annotator_annotation a WHERE a.assignment_id = %(assignment)s AND a.is_current
""")


def _current(assignment: Assignment) -> Annotation | None:
    row = _CURRENT.row(assignment=assignment.pk)
    return _ANNOTATION.instance(row) if row else None


def _allow_revision(assignment: Assignment) -> None:
    verdict = assignment.verdicts.order_by("-pk").first()
    if verdict and verdict.decision == Verdict.Decision.REJECTED:
        raise Refused(_("A reviewer has rejected this rating: %(comment)s") % {"comment": verdict.comment})
    if assignment.task.state != Task.State.QUARANTINED and not assignment.task.may_be_revised():
        raise Refused(_("This task is complete: its labels are made, so the rating can no longer be changed."))


def _may_be_taken(assignment: Assignment) -> None:
    if assignment.state == Assignment.State.SKIPPED:
        raise Refused(_("You skipped this task, so it cannot be rated."))
    if assignment.slot is None and assignment.counts:
        assignment.slot = free_slot(assignment.task)


# All rows of one submission in one statement: this runs more often than anything else that writes.
_STORE = Statement("""
WITH annotation AS (
    INSERT INTO annotator_annotation (assignment_id, revision, is_current, origin, preference, justification,
        active_seconds, guideline_version, content_hash, submitted_at)
    SELECT %(assignment)s, %(revision)s, true, %(origin)s, %(preference)s, %(justification)s, %(active_seconds)s,
        coalesce((SELECT acknowledged_version FROM annotator_membership
                  WHERE user_id = %(annotator)s AND project_id = %(project)s), 0),
        %(content_hash)s, %(now)s
    RETURNING id
), ratings AS (
    INSERT INTO annotator_rating (annotation_id, response_id, scores, checks, confidence, safe, unsafe_category)
    SELECT annotation.id, r.response, r.scores, r.checks, r.confidence, r.safe, r.unsafe_category
    FROM annotation, jsonb_to_recordset(%(ratings)s) AS r (
        response bigint, scores jsonb, checks jsonb, confidence smallint, safe boolean, unsafe_category text
    )
), held AS (
    UPDATE annotator_assignment SET state = 'submitted', slot = %(slot)s WHERE id = %(assignment)s
), tally AS (
    INSERT INTO annotator_tally (annotator_id, project_id, done) SELECT %(annotator)s, %(project)s, 1
    WHERE %(revision)s = 1
    ON CONFLICT (annotator_id, project_id) DO UPDATE SET done = annotator_tally.done + 1
), draft AS (
    DELETE FROM annotator_draft WHERE assignment_id = %(assignment)s
)
SELECT id FROM annotation
""")


def _store(assignment: Assignment, submission: Submission, *, revision: int, now: datetime, origin: str) -> Annotation:
    """The annotation with its ratings; the assignment is submitted, its draft gone, the annotator's tally counted."""
    preference = by_position(submission.preference, assignment.response_order)
    values = {
        "assignment": assignment.pk,
        "annotator": assignment.annotator_id,
        "project": assignment.task.project_id,
        "slot": assignment.slot,
        "revision": revision,
        "origin": origin,
        "preference": preference,
        "justification": submission.justification,
        "active_seconds": submission.active_seconds,
        "content_hash": submission.content_hash(),
        "ratings": json.dumps([{"response": pk} | asdict(rating) for pk, rating in submission.ratings.items()]),
        "now": now,
    }
    ((number,),) = _STORE.rows(**values)
    assignment.state = Assignment.State.SUBMITTED
    return Annotation(pk=number, assignment=assignment, revision=revision, preference=preference, submitted_at=now)


def by_position(preference: int | None, order: Sequence[int]) -> int | None:
    """Stored preferences are relative to the responses' positions, whatever order was shown; the same leads back."""
    if preference is None or preference == NEITHER_VALID or list(order) == sorted(order):
        return preference
    return -preference
