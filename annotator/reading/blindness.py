"""Keeps ratings blind: whoever holds a task does not see the others' ratings, and nobody settles their own work."""

from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from annotator.infrastructure.refusals import Refusal
from annotator.models import Assignment, Task, User


def tasks_held_by(reviewer: User | None) -> QuerySet[Any]:
    """Returns the ids of the tasks whose ratings the reviewer must not see yet; without a reviewer there are none."""
    return Assignment.objects.leased().filter(annotator=reviewer).values("task")


def require_not_rating(task: Task, reviewer: User) -> None:
    """Raises Refusal for a reviewer who holds the task as an annotator."""
    if Assignment.objects.leased().filter(task=task, annotator=reviewer).exists():
        raise Refusal(
            _("You are rating this task yourself. Submit it or give it back before you look at the others' ratings."),
            code="still_rating",
        )


def require_others_work(task: Task, reviewer: User) -> None:
    """Raises Refusal if every rating that counts is the reviewer's own."""
    raters = set(Assignment.objects.submitted().filter(task=task, counts=True).values_list("annotator", flat=True))
    if raters == {reviewer.pk}:
        raise Refusal(_("Only you have rated this task, so somebody else has to settle it."), code="own_work")
