"""Stores a reviewer's verdict on one annotation. A rejected one leaves the consensus, and its slot is free again.

An extra, which was handed in when its task had no room, counts once it is accepted.
"""

from collections.abc import Sequence
from datetime import datetime

from django.utils.translation import gettext as _

from annotator.infrastructure import audit
from annotator.infrastructure.db.retries import in_transaction
from annotator.infrastructure.db.storable_text import check_written
from annotator.infrastructure.refusals import Refusal
from annotator.models import Assignment, Exclusion, Task, User, Verdict
from annotator.reading.assignment_rows import locked
from annotator.reading.blindness import require_not_rating
from annotator.reading.pseudonyms import pseudonym
from annotator.stages import consensus
from annotator.stages.annotation import Refused
from annotator.stages.review.admission import admit_and_settle
from annotator.stages.review.queue import ask_for_review


class CommentNeeded(Refusal):
    """The rejection has no comment, so its annotator would learn nothing from it."""

    status = 400
    code = "comment_needed"

    def __init__(self) -> None:
        super().__init__(_("Say why you reject the rating. Its annotator will read this."))
        self.errors = {"comment": [str(self)]}


@in_transaction
def judge(assignment_id: int, *, decision: str, comment: str = "", by: User, now: datetime) -> Verdict:
    """Stores the verdict. The same verdict again changes nothing; another one replaces it, and both rows are kept.

    Raises:
        CommentNeeded: a rejection has no comment.
        UnstorableText, TextTooLong: the comment cannot be stored as it is.
        Refusal: the annotation is the reviewer's own.
        Refusal: the reviewer holds the task.
        Refused: nothing has been submitted, or the task is one that measures annotators.
    """
    comment = comment.strip()
    check_written(comment, "comment")
    if decision == Verdict.Decision.REJECTED and not comment:
        raise CommentNeeded
    assignment = locked(assignment_id)
    _check_judgeable(assignment, by)
    # An excluded annotator's never counts.
    excluded = Exclusion.objects.filter(project=assignment.task.project_id, annotator=assignment.annotator_id)
    counts = decision != Verdict.Decision.REJECTED and not excluded.exists()
    last = latest_verdict(assignment)
    # The same verdict may still change what counts: an extra that was accepted while its annotator was excluded is
    # not brought back by the readmission, and counts when it is accepted again.
    if last and (last.decision, last.comment) == (decision, comment) and counts == assignment.counts:
        return last
    verdict = Verdict.objects.create(assignment=assignment, decision=decision, comment=comment, by=by, made_at=now)
    task, chosen = assignment.task, Assignment.objects.filter(pk=assignment.pk)
    if counts and not assignment.counts:
        # Accepted work gets a slot, even if it was an extra.
        admit_and_settle(chosen, [task], project=task.project, now=now)
    elif assignment.counts and not counts:
        # The slot of rejected work is for others.
        chosen.update(counts=False, slot=None)
        consensus.settle([task], project=task.project, now=now)
    subject = f"annotation of task {task.external_id} by {pseudonym(assignment.annotator_id, task.project_id)}"
    audit.record(f"annotation.{decision}", subject, project=task.project, assignment=assignment.pk)
    ask_for_review(Task.objects.filter(pk=assignment.task_id))
    return verdict


def latest_verdict(assignment: Assignment) -> Verdict | None:
    """Returns the verdict in force, which is the latest."""
    return assignment.verdicts.order_by("-pk").first()


def latest_verdicts(assignments: Sequence[int]) -> dict[int, Verdict]:
    """Returns the verdict in force of each assignment that has one."""
    # Ascending, so that the latest of an assignment is the one that stays in the dict.
    verdicts = Verdict.objects.filter(assignment__in=assignments).order_by("pk").select_related("by")
    return {verdict.assignment_id: verdict for verdict in verdicts}


def _check_judgeable(assignment: Assignment, by: User) -> None:
    if assignment.state != Assignment.State.SUBMITTED:
        raise Refused(_("There is no rating to judge: this annotator has not submitted one."))
    if assignment.task.state == Task.State.GOLD:
        raise Refused(_("This task measures annotators. Its ratings are compared with those of experts, not reviewed."))
    if assignment.annotator_id == by.pk:
        raise Refusal(_("This is your own rating, so somebody else has to judge it."), code="own_work")
    require_not_rating(assignment.task, by)
