"""A reviewer accepts or rejects one annotation. A rejected one leaves the consensus, and its slot is free again.

An extra, which came when its task had no room, counts once it is accepted.
"""

from collections.abc import Sequence
from datetime import datetime

from django.utils.translation import gettext as _

from annotator import audit, consensus
from annotator.annotation import Refused
from annotator.assignment import locked
from annotator.db.retries import in_transaction
from annotator.db.storable_text import check_written
from annotator.models import Assignment, Exclusion, Task, User, Verdict
from annotator.projects.pseudonyms import pseudonym
from annotator.refusals import Refusal
from annotator.review.admission import admit_and_settle
from annotator.review.blindness import OwnWork, require_not_rating
from annotator.review.unlikely_annotations import ask_for_review


class CommentNeeded(Refusal):
    """A rejection without a word would teach its annotator nothing."""

    status = 400
    code = "comment_needed"

    def __init__(self) -> None:
        super().__init__(_("Say why you reject the rating. Its annotator will read this."))
        self.errors = {"comment": [str(self)]}


@in_transaction
def judge(assignment_id: int, *, decision: str, comment: str = "", by: User, now: datetime) -> Verdict:
    """Stores the verdict; the same again changes nothing, another one replaces it and stands beside it.

    Raises:
        CommentNeeded: a rejection says nothing.
        OwnWork: the annotation is the reviewer's own.
        StillRating: the reviewer holds the task.
        Refused: nothing has been submitted, or the task is one that measures annotators.
    """
    comment = comment.strip()
    check_written(comment, "comment")
    if decision == Verdict.Decision.REJECTED and not comment:
        raise CommentNeeded
    assignment = locked(assignment_id)
    _check_judgeable(assignment, by)
    last, counts = latest_verdict(assignment), _would_count(assignment, decision)
    if last and (last.decision, last.comment) == (decision, comment) and counts == assignment.counts:
        return last
    verdict = Verdict.objects.create(assignment=assignment, decision=decision, comment=comment, by=by, made_at=now)
    if counts != assignment.counts:
        _let_count(assignment, counts=counts, now=now)
    task = assignment.task
    subject = f"annotation of task {task.external_id} by {pseudonym(assignment.annotator_id, task.project_id)}"
    audit.record(f"annotation.{decision}", subject, project=task.project, assignment=assignment.pk)
    ask_for_review(Task.objects.filter(pk=assignment.task_id))
    return verdict


def latest_verdict(assignment: Assignment) -> Verdict | None:
    """The verdict in force, which is the latest."""
    return assignment.verdicts.order_by("-pk").first()


def latest_verdicts(assignments: Sequence[int]) -> dict[int, Verdict]:
    """The verdict in force by assignment."""
    verdicts = Verdict.objects.filter(assignment__in=assignments).order_by("pk").select_related("by")
    return {verdict.assignment_id: verdict for verdict in verdicts}


def _check_judgeable(assignment: Assignment, by: User) -> None:
    if assignment.state != Assignment.State.SUBMITTED:
        raise Refused(_("There is no rating to judge: this annotator has not submitted one."))
    if assignment.task.state == Task.State.GOLD:
        raise Refused(_("This task measures annotators. Its ratings are compared with those of experts, not reviewed."))
    if assignment.annotator_id == by.pk:
        raise OwnWork(_("This is your own rating, so somebody else has to judge it."))
    require_not_rating(assignment.task, by)


def _would_count(assignment: Assignment, decision: str) -> bool:
    """What an excluded annotator made does not count, accepted or not."""
    if decision == Verdict.Decision.REJECTED:
        return False
    excluded = Exclusion.objects.filter(project=assignment.task.project_id, annotator=assignment.annotator_id)
    return not excluded.exists()


def _let_count(assignment: Assignment, *, counts: bool, now: datetime) -> None:
    """What is accepted takes a slot, an extra too; what is rejected leaves its slot to others."""
    task, chosen = assignment.task, Assignment.objects.filter(pk=assignment.pk)
    if counts:
        admit_and_settle(chosen, [task], project=task.project, now=now)
    else:
        chosen.update(counts=False, slot=None)
        consensus.settle([task], project=task.project, now=now)
