"""What raters find the guidelines silent about; their tasks wait for a reviewer until it is answered."""

from datetime import datetime

from django.utils.translation import gettext as _

from annotator.infrastructure.db.retries import in_transaction
from annotator.models import Assignment, GuidelineGap
from annotator.reading.assignment_rows import locked
from annotator.stages import consensus
from annotator.stages.annotation.recorded_refusals import Refused, record
from annotator.stages.assignment import require_holding_or_at_work


@in_transaction
def note_gap(assignment_id: int, *, attribute: str = "", now: datetime) -> GuidelineGap:
    """Says that the guidelines are silent about this task: on one of its attributes or aspects, or without one on all.

    The rater goes on with the task. Saying it again changes nothing, unless a reviewer has answered meanwhile.

    Raises:
        Refused: the task is neither held nor rated by the annotator, or the project has no such attribute.
        Refusal: the annotator is excluded or paused, and does not hold the task.
    """
    assignment = locked(assignment_id)
    task = assignment.task
    require_holding_or_at_work(assignment)
    if assignment.state not in (Assignment.State.LEASED, Assignment.State.SUBMITTED):
        raise Refused(_("You no longer have this task."))
    scales = [*task.project.attributes_for(), *task.project.aspects()]
    if attribute and attribute not in {scale.key for scale in scales}:
        raise Refused(_("This project has no scale “%(name)s”.") % {"name": attribute[:50]})
    earlier = GuidelineGap.objects.filter(assignment=assignment, attribute=attribute)
    gap = earlier.filter(closed_at=None).first()
    if gap is None:
        # A row of its own, not the one that was answered: reviewers close what they have read, by its number.
        earlier.delete()
        gap = GuidelineGap.objects.create(task=task, assignment=assignment, attribute=attribute, created_at=now)
        record("task.guidelines_silent", task, attribute=attribute)
        consensus.settle([task], project=task.project, now=now)
    return gap
