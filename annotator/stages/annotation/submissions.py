"""Stores a finished rating, or a revision of it while its task is open."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models.functions import Length
from django.utils.translation import gettext as _

from annotator.infrastructure.audit import ADD_ENTRY
from annotator.infrastructure.db.retries import in_transaction
from annotator.infrastructure.db.statements import Columns, Statement
from annotator.models import NEITHER_VALID, Annotation, Assignment, Origin, Response, Task, User, Verdict
from annotator.models.public_ids import response_number
from annotator.reading.assignment_rows import locked, locked_own, locked_to_claim
from annotator.stages import consensus
from annotator.stages.annotation.completeness import IncompleteRating, check_complete
from annotator.stages.annotation.content import Submission
from annotator.stages.annotation.cuts import Cuts, cuts_of, require_room
from annotator.stages.annotation.recorded_refusals import Refused, entry_about
from annotator.stages.assignment import ENTITLEMENT, Claim, Entitlement, claim, free_slot, next_task, responses_of
from annotator.stages.consensus.rankings import tiers
from annotator.stages.gold import gold_tasks
from annotator.stages.segmenting import NotAPartition, partition


@dataclass(frozen=True)
class Submitted:
    """The annotation that now counts for the assignment, and whether this call created the first one.

    `scores` are as the database stores them, by response id, in the order of the responses' positions. The annotation's
    ranking and aspects are as the database stores them, too, and so are the `segments`, by response id, where segments
    are rated.
    """

    annotation: Annotation
    created: bool
    scores: Mapping[int, Mapping[str, int]]
    segments: Mapping[int, Sequence[Sequence[int | None]]] = field(default_factory=dict)


@in_transaction
def submit(assignment_id: int, submission: Submission, *, now: datetime, origin: str = Origin.PERSON) -> Submitted:
    """Stores a finished rating. The same rating again changes nothing; a different one is a revision of it.

    An expired lease is no obstacle: the work takes a free slot, or is kept as an extra that does not count.

    Raises:
        IncompleteRating: an answer is missing or off the scale.
        Refusal: the annotator is excluded or paused, and does not hold the task.
        Refused: the annotator has skipped the task, or its rating can no longer be changed.
    """
    return _submit(locked(assignment_id), submission, now=now, origin=origin)


@in_transaction
def submit_own(annotator: User, assignment_id: int, submission: Submission, *, now: datetime) -> Submitted:
    """Does what `submit` does, but only for an assignment of the annotator's.

    Raises:
        Assignment.DoesNotExist: the assignment is not theirs, or they have left its project.
    """
    return _submit(locked_own(annotator, assignment_id), submission, now=now)


def submit_and_claim(
    annotator: User, assignment_id: int, submission: Submission, *, now: datetime
) -> tuple[Submitted, Claim]:
    """Does `submit_own` and then `claim` in one transaction, so that the disk is waited for once."""
    submitted, claimed = _submit_and_claim(annotator, assignment_id, submission, now=now)
    if claimed.locked:
        claimed = claim(submitted.annotation.assignment.task.project, annotator, now=now)
    return submitted, claimed


@in_transaction
def _submit_and_claim(
    annotator: User, assignment_id: int, submission: Submission, *, now: datetime
) -> tuple[Submitted, Claim]:
    assignment = locked_to_claim(annotator, assignment_id)
    submitted = _submit(assignment, submission, now=now)
    return submitted, next_task(assignment.task.project, annotator, now=now)


def _submit(assignment: Assignment, submission: Submission, *, now: datetime, origin: str = Origin.PERSON) -> Submitted:
    task = assignment.task
    responses, entitlement, current = _before(assignment)
    lengths = _lengths(submission)
    check_complete(submission, project=task.project, responses=responses, cuts=_cuts(task, submission), lengths=lengths)
    _require_changed(submission)
    # Before anything is refused: a browser that missed the answer sends the form again, and gets the same answer.
    if current and current.content_hash == submission.content_hash():
        current.assignment = assignment
        return Submitted(current, False, *_scores(_SCORES.rows(annotation=current.pk)))
    if current:
        entitlement.require_at_work()
        allow_revision(assignment)
        Annotation.objects.filter(pk=current.pk).update(is_current=False)
    else:
        _take_place(assignment, entitlement, now)
    revision = current.revision + 1 if current else 1
    annotation, rows = _store(assignment, submission, revision=revision, now=now, origin=origin)
    if task.state == Task.State.GOLD and current is None:
        gold_tasks.judge(assignment, now=now)
    consensus.settle([task], project=task.project, now=now)
    return Submitted(annotation, current is None, *_scores([rows[response] for response in responses]))


_ANNOTATION = Columns(Annotation, "a", ("origin", "preference", "justification", "active_seconds", "guideline_version"))
# Not part of the statement that locks: that one's snapshot is older than its wait for the lock, so it would miss what
# was committed meanwhile, such as the first of two submissions.
_BEFORE = Statement(f"""
SELECT ARRAY(SELECT r.id FROM annotator_response r WHERE r.task_id = %(task)s ORDER BY r.position),
    {ENTITLEMENT}, {_ANNOTATION}
FROM (SELECT 1) AS one LEFT JOIN annotator_annotation a ON a.assignment_id = %(assignment)s AND a.is_current
""")


def _before(assignment: Assignment) -> tuple[list[int], Entitlement, Annotation | None]:
    """Reads the ids of the task's responses by position, what bars the annotator, and their current annotation."""
    project = assignment.task.project
    ((responses, *row),) = _BEFORE.rows(
        task=assignment.task_id, assignment=assignment.pk, annotator=assignment.annotator_id, project=project.pk
    )
    entitlement, annotation = Entitlement.read(row[: Entitlement.COLUMNS], project), row[Entitlement.COLUMNS :]
    return responses, entitlement, _ANNOTATION.instance(annotation) if annotation[0] else None


_SCORES = Statement("""
SELECT r.response_id, r.scores, r.segment_scores
FROM annotator_rating r JOIN annotator_response p ON p.id = r.response_id
WHERE r.annotation_id = %(annotation)s ORDER BY p.position
""")


def _scores(
    rows: Iterable[Sequence[Any]],
) -> tuple[dict[int, dict[str, int]], dict[int, list[list[int | None]]]]:
    """Returns the scores of responses, and those of their segments, from rows of _SCORES."""
    scores, segments = {}, {}
    for response, of_response, of_segments in rows:
        scores[response] = json.loads(of_response)
        if of_segments is not None:
            segments[response] = json.loads(of_segments)
    return scores, segments


def _cuts(task: Task, submission: Submission) -> Cuts:
    """Returns the segments by which the responses are rated: their own, or those of the annotator.

    Raises:
        IncompleteRating: the annotator's segments do not partition the text, are too many, or must not be changed.
    """
    if not task.project.aspects():
        return {}
    responses = responses_of(task)
    cuts = cuts_of(task.project, task, responses)
    for response in responses:
        rating = submission.ratings.get(response.pk)
        if rating is None or not rating.cut:
            continue
        place = f"ratings.{response.public_id}.cut"
        if not task.project.allow_recut:
            raise IncompleteRating({place: [_("this project allows nobody to change the segments: leave this out")]})
        try:
            cuts[response.pk] = partition(response.text, rating.cut)
        except NotAPartition as wrong:
            raise IncompleteRating({place: [str(wrong)]}) from wrong
    if any(rating.cut for rating in submission.ratings.values()):
        try:
            require_room([len(cut) for cut in cuts.values()])
        except NotAPartition as wrong:
            raise IncompleteRating({"ratings": [str(wrong)]}) from wrong
    return cuts


def _require_changed(submission: Submission) -> None:
    """Raises IncompleteRating if an edit is the response as it was."""
    edits = {response: rating.edit for response, rating in submission.ratings.items() if rating.edit}
    if not edits:
        return
    texts = Response.objects.filter(pk__in=edits).values_list("pk", "text")
    unchanged = [pk for pk, text in texts if not edits[pk].strip() or edits[pk].split() == text.split()]
    if unchanged:
        text = _("the edit does not change the response: change it, or leave the edit out")
        raise IncompleteRating({f"ratings.{response_number(pk)}": [text] for pk in sorted(unchanged)})


def allow_revision(assignment: Assignment) -> None:
    """Raises Refused if the submitted rating can no longer be changed."""
    verdict = assignment.verdicts.order_by("-pk").first()
    if verdict and verdict.decision == Verdict.Decision.REJECTED:
        raise Refused(_("A reviewer has rejected this rating: %(comment)s") % {"comment": verdict.comment})
    if assignment.task.state != Task.State.QUARANTINED and not assignment.task.may_be_revised():
        raise Refused(_("This task is complete and has its labels, so the rating can no longer be changed."))


def _take_place(assignment: Assignment, entitlement: Entitlement, now: datetime) -> None:
    """Gives the work a slot. A lease has one already; late work takes a free one if it may, else becomes an extra."""
    if assignment.state == Assignment.State.SKIPPED:
        raise Refused(_("You skipped this task, so it cannot be rated."))
    if assignment.state == Assignment.State.LEASED:
        return
    if not assignment.counts:
        # The task was taken from somebody who was excluded while rating it: they may hand it in until the time at
        # which their lease would have expired.
        if assignment.lease_expires_at < now:
            entitlement.require_at_work()
        return
    if assignment.state == Assignment.State.RELEASED:
        entitlement.require_at_work()
    barred = entitlement.bar_reason() or entitlement.has_filled_quota()
    assignment.slot = None if barred else free_slot(assignment.task)
    if assignment.slot is None:
        assignment.counts, assignment.extra = False, True


def _lengths(submission: Submission) -> dict[int, int]:
    """Returns the lengths of the texts of those responses that have evidence."""
    quoted = [response for response, rating in submission.ratings.items() if rating.evidence]
    if not quoted:
        return {}
    return dict(Response.objects.filter(pk__in=quoted).values_list("pk", Length("text")))


# One statement writes all rows of a submission, to save round trips: no other write runs as often.
_STORE = Statement(f"""
WITH annotation AS (
    INSERT INTO annotator_annotation (assignment_id, revision, is_current, origin, preference, ranking, justification,
        domain, language, aspects, active_seconds, guideline_version, rubric_version, content_hash, submitted_at)
    SELECT %(assignment)s, %(revision)s, true, %(origin)s, %(preference)s, %(ranking)s::jsonb, %(justification)s,
        %(domain)s, %(language)s, %(aspects)s, %(active_seconds)s,
        coalesce((SELECT acknowledged_version FROM annotator_membership
                  WHERE user_id = %(annotator)s AND project_id = %(project)s), 0),
        (SELECT version FROM annotator_rubric WHERE id = %(rubric)s),
        %(content_hash)s, %(now)s
    RETURNING id, ranking
), ratings AS (
    INSERT INTO annotator_rating (annotation_id, response_id, scores, checks, confidence, safe, unsafe_category,
        feedback, edit, edit_summary, segment_scores, cut, comments, evidence)
    SELECT annotation.id, r.response, r.scores, r.checks, r.confidence, r.safe, r.unsafe_category,
        r.feedback, r.edit, r.edit_summary, nullif(r.segment_scores, 'null'), nullif(r.cut, '[]'), r.comments,
        r.evidence
    FROM annotation, jsonb_to_recordset(%(ratings)s) AS r (
        response bigint, scores jsonb, checks jsonb, confidence smallint, safe boolean, unsafe_category text,
        feedback text, edit text, edit_summary text, segment_scores jsonb, cut jsonb, comments jsonb,
        evidence jsonb
    )
    RETURNING response_id, scores, segment_scores
), assignment AS (
    UPDATE annotator_assignment SET state = 'submitted', slot = %(slot)s, counts = %(counts)s, extra = %(extra)s
    WHERE id = %(assignment)s
), tally AS (
    INSERT INTO annotator_tally (annotator_id, project_id, done) SELECT %(annotator)s, %(project)s, 1
    WHERE %(revision)s = 1
    ON CONFLICT (annotator_id, project_id) DO UPDATE SET done = annotator_tally.done + 1
), draft AS (
    DELETE FROM annotator_draft WHERE assignment_id = %(assignment)s
), entry AS ({ADD_ENTRY})
SELECT annotation.id, annotation.ranking, ratings.response_id, ratings.scores, ratings.segment_scores
FROM annotation, ratings
""")


def _store(
    assignment: Assignment, submission: Submission, *, revision: int, now: datetime, origin: str
) -> tuple[Annotation, dict[int, Sequence[Any]]]:
    """Stores the annotation with its ratings and its audit entry, counts the assignment, and deletes its draft.

    The scores are returned as the database stores them, as rows of _SCORES by response id.
    """
    aspects = [aspect.key for aspect in assignment.task.project.aspects()]
    preference = by_position(submission.preference, assignment.response_order)
    ranking = None if submission.ranking is None else tiers(submission.ranking)
    values = {
        "assignment": assignment.pk,
        "annotator": assignment.annotator_id,
        "project": assignment.task.project_id,
        "rubric": assignment.task.project.rubric_id,
        "slot": assignment.slot,
        "counts": assignment.counts,
        "extra": assignment.extra,
        "revision": revision,
        "origin": origin,
        "preference": preference,
        "ranking": json.dumps(ranking) if ranking else None,
        "justification": submission.justification,
        "domain": submission.domain,
        "language": submission.language,
        "aspects": aspects,
        "active_seconds": submission.active_seconds,
        "content_hash": submission.content_hash(),
        # vars() instead of asdict(), which copies every value: this runs at every submission.
        "ratings": json.dumps(
            [
                vars(rating) | {"response": pk, "segment_scores": rating.segment_scores(aspects)}
                for pk, rating in submission.ratings.items()
            ]
        ),
        "now": now,
    }
    action = "annotation.submitted" if revision == 1 else "annotation.revised"
    rows = _STORE.rows(**values, **entry_about(assignment.task, action, revision=revision))
    assignment.state = Assignment.State.SUBMITTED
    annotation = Annotation(
        pk=rows[0][0],
        assignment=assignment,
        revision=revision,
        preference=preference,
        ranking=json.loads(rows[0][1]) if rows[0][1] else None,
        aspects=aspects,
        submitted_at=now,
    )
    return annotation, {row[2]: row[2:] for row in rows}


def by_position(preference: int | None, order: Sequence[int]) -> int | None:
    """Turns a preference for the order that was shown into one for the responses' positions, or the other way round."""
    if preference is None or preference == NEITHER_VALID or list(order) == sorted(order):
        return preference
    return -preference
