"""A finished rating is stored, or revised while its task is open."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

from django.utils.translation import gettext as _

from annotator import consensus
from annotator.annotation.completeness import check_complete
from annotator.annotation.content import Submission
from annotator.annotation.recorded_refusals import Refused, record
from annotator.assignment import (
    ENTITLEMENT,
    Claim,
    Entitlement,
    free_slot,
    locked,
    locked_own,
    locked_to_claim,
    next_task,
)
from annotator.consensus.rankings import tiers
from annotator.db.retries import in_transaction
from annotator.db.statements import Columns, Statement
from annotator.gold import gold_tasks
from annotator.models import NEITHER_VALID, Annotation, Assignment, Origin, Task, User, Verdict


@dataclass(frozen=True)
class Submitted:
    """The annotation that now stands for the assignment, and whether this call made the first one.

    `scores` are those that the database holds, by response, in the order of their positions; so is the annotation's
    ranking.
    """

    annotation: Annotation
    created: bool
    scores: Mapping[int, Mapping[str, int]]


@in_transaction
def submit(assignment_id: int, submission: Submission, *, now: datetime, origin: str = Origin.PERSON) -> Submitted:
    """Stores a finished rating: the same again changes nothing, another one is a revision while the task is open.

    A lease that ran out is no obstacle: the work takes a free slot, or is kept as an extra that does not count.

    Raises:
        IncompleteRating: an answer is missing or off the scale.
        NotAtWork: the annotator is excluded or paused, and does not hold the task.
        Refused: the task was skipped by this person, or is closed for edits.
    """
    return _submit(locked(assignment_id), submission, now=now, origin=origin)


@in_transaction
def submit_own(annotator: User, assignment_id: int, submission: Submission, *, now: datetime) -> Submitted:
    """`submit`, of an assignment of the annotator's; raises Assignment.DoesNotExist for any other."""
    return _submit(locked_own(annotator, assignment_id), submission, now=now)


@in_transaction
def submit_and_claim(
    annotator: User, assignment_id: int, submission: Submission, *, now: datetime
) -> tuple[Submitted, Claim]:
    """`submit_own`, then `claim`: both or neither, so that the disk is waited for once."""
    mine = locked_to_claim(annotator, assignment_id)
    done = _submit(mine, submission, now=now)
    return done, next_task(mine.task.project, annotator, now=now)


def _submit(assignment: Assignment, submission: Submission, *, now: datetime, origin: str = Origin.PERSON) -> Submitted:
    task = assignment.task
    responses, entitlement, current = _before(assignment)
    check_complete(submission, project=task.project, responses=responses)
    if current and current.content_hash == submission.content_hash():
        current.assignment = assignment
        return Submitted(current, created=False, scores=_scores(current))
    if current:
        entitlement.require_at_work()
        allow_revision(assignment)
        Annotation.objects.filter(pk=current.pk).update(is_current=False)
    else:
        _take_place(assignment, entitlement, now)
    revision = current.revision + 1 if current else 1
    annotation, scores = _store(assignment, submission, revision=revision, now=now, origin=origin)
    if task.state == Task.State.GOLD and current is None:
        gold_tasks.judge(assignment, now=now)
    consensus.settle([task], project=task.project, now=now)
    record("annotation.revised" if current else "annotation.submitted", task, revision=revision)
    return Submitted(annotation, created=current is None, scores={response: scores[response] for response in responses})


_ANNOTATION = Columns(Annotation, "a", ("origin", "preference", "justification", "active_seconds", "guideline_version"))
# Not in the statement that locks: after waiting for the lock it would not see what was committed meanwhile.
_BEFORE = Statement(f"""
SELECT ARRAY(SELECT r.id FROM annotator_response r WHERE r.task_id = %(task)s ORDER BY r.position),
    {ENTITLEMENT}, {_ANNOTATION}
FROM (SELECT 1) AS one LEFT JOIN annotator_annotation a ON a.assignment_id = %(assignment)s AND a.is_current
""")


def _before(assignment: Assignment) -> tuple[list[int], Entitlement, Annotation | None]:
    """The ids of the task's responses by position, how its annotator stands, and what they submitted until now."""
    project = assignment.task.project
    ((responses, *row),) = _BEFORE.rows(
        task=assignment.task_id, assignment=assignment.pk, annotator=assignment.annotator_id, project=project.pk
    )
    entitlement, annotation = Entitlement.read(row[: Entitlement.COLUMNS], project), row[Entitlement.COLUMNS :]
    return responses, entitlement, _ANNOTATION.instance(annotation) if annotation[0] else None


_SCORES = Statement("""
SELECT r.response_id, r.scores FROM annotator_rating r JOIN annotator_response p ON p.id = r.response_id
WHERE r.annotation_id = %(annotation)s ORDER BY p.position
""")


def _scores(annotation: Annotation) -> dict[int, dict[str, int]]:
    return {response: json.loads(scores) for response, scores in _SCORES.rows(annotation=annotation.pk)}


def allow_revision(assignment: Assignment) -> None:
    """Raises Refused where the rating that was submitted stands for good."""
    verdict = assignment.verdicts.order_by("-pk").first()
    if verdict and verdict.decision == Verdict.Decision.REJECTED:
        raise Refused(_("A reviewer has rejected this rating: %(comment)s") % {"comment": verdict.comment})
    if assignment.task.state != Task.State.QUARANTINED and not assignment.task.may_be_revised():
        raise Refused(_("This task is complete and has its labels, so the rating can no longer be changed."))


def _take_place(assignment: Assignment, entitlement: Entitlement, now: datetime) -> None:
    """A lease has its slot. What comes late takes one where the task has room for this person, else it is an extra."""
    if assignment.state == Assignment.State.SKIPPED:
        raise Refused(_("You skipped this task, so it cannot be rated."))
    if assignment.state == Assignment.State.LEASED:
        return
    if not assignment.counts:
        # Taken from somebody excluded while they rated it: they may hand it in until their lease would have run out.
        if assignment.lease_expires_at < now:
            entitlement.require_at_work()
        return
    if assignment.state == Assignment.State.RELEASED:
        entitlement.require_at_work()
    if assignment.task.state == Task.State.GOLD:
        gold_tasks.make_room(assignment.task)
    barred = entitlement.barred_because() or entitlement.has_filled_quota()
    assignment.slot = None if barred else free_slot(assignment.task)
    if assignment.slot is None:
        assignment.counts, assignment.extra = False, True


# All rows of one submission in one statement: this runs more often than anything else that writes.
_STORE = Statement("""
WITH annotation AS (
    INSERT INTO annotator_annotation (assignment_id, revision, is_current, origin, preference, ranking, justification,
        active_seconds, guideline_version, content_hash, submitted_at)
    SELECT %(assignment)s, %(revision)s, true, %(origin)s, %(preference)s, %(ranking)s::jsonb, %(justification)s,
        %(active_seconds)s,
        coalesce((SELECT acknowledged_version FROM annotator_membership
                  WHERE user_id = %(annotator)s AND project_id = %(project)s), 0),
        %(content_hash)s, %(now)s
    RETURNING id, ranking
), ratings AS (
    INSERT INTO annotator_rating (annotation_id, response_id, scores, checks, confidence, safe, unsafe_category)
    SELECT annotation.id, r.response, r.scores, r.checks, r.confidence, r.safe, r.unsafe_category
    FROM annotation, jsonb_to_recordset(%(ratings)s) AS r (
        response bigint, scores jsonb, checks jsonb, confidence smallint, safe boolean, unsafe_category text
    )
    RETURNING response_id, scores
), held AS (
    UPDATE annotator_assignment SET state = 'submitted', slot = %(slot)s, counts = %(counts)s, extra = %(extra)s
    WHERE id = %(assignment)s
), tally AS (
    INSERT INTO annotator_tally (annotator_id, project_id, done) SELECT %(annotator)s, %(project)s, 1
    WHERE %(revision)s = 1
    ON CONFLICT (annotator_id, project_id) DO UPDATE SET done = annotator_tally.done + 1
), draft AS (
    DELETE FROM annotator_draft WHERE assignment_id = %(assignment)s
)
SELECT annotation.id, annotation.ranking, ratings.response_id, ratings.scores FROM annotation, ratings
""")


def _store(
    assignment: Assignment, submission: Submission, *, revision: int, now: datetime, origin: str
) -> tuple[Annotation, dict[int, dict[str, int]]]:
    """The annotation with its ratings; the assignment is submitted, its draft gone, the annotator's tally counted.

    The scores are what the database has made of them, by response.
    """
    preference = by_position(submission.preference, assignment.response_order)
    ranking = None if submission.ranking is None else tiers(submission.ranking)
    values = {
        "assignment": assignment.pk,
        "annotator": assignment.annotator_id,
        "project": assignment.task.project_id,
        "slot": assignment.slot,
        "counts": assignment.counts,
        "extra": assignment.extra,
        "revision": revision,
        "origin": origin,
        "preference": preference,
        "ranking": json.dumps(ranking) if ranking else None,
        "justification": submission.justification,
        "active_seconds": submission.active_seconds,
        "content_hash": submission.content_hash(),
        "ratings": json.dumps([{"response": pk} | asdict(rating) for pk, rating in submission.ratings.items()]),
        "now": now,
    }
    rows = _STORE.rows(**values)
    assignment.state = Assignment.State.SUBMITTED
    made = Annotation(
        pk=rows[0][0],
        assignment=assignment,
        revision=revision,
        preference=preference,
        ranking=json.loads(rows[0][1]) if rows[0][1] else None,
        submitted_at=now,
    )
    return made, {response: json.loads(scores) for _, _, response, scores in rows}


def by_position(preference: int | None, order: Sequence[int]) -> int | None:
    """Stored preferences are relative to the responses' positions, whatever order was shown; the same leads back."""
    if preference is None or preference == NEITHER_VALID or list(order) == sorted(order):
        return preference
    return -preference
