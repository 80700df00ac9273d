"""Puts tasks with annotations that a model finds unlikely into the queue until somebody has looked at them.

The machine half (rewards) notes which annotations these are.
"""

from django.db.models import QuerySet

from annotator.db.retries import in_transaction
from annotator.models import Task, UnlikelyAnnotation


@in_transaction
def ask_for_review(tasks: QuerySet[Task]) -> int:
    """Makes those of the tasks wait for a reviewer that have such an annotation, and the others no longer.

    Any other reason to wait takes precedence. Settling a task removes this reason until the function is called again.
    Returns how many tasks changed.
    """
    unlikely = UnlikelyAnnotation.objects.in_force().filter(task__in=tasks).values("task")
    waiting = tasks.filter(review_reason=Task.Review.UNLIKELY).exclude(pk__in=unlikely)
    idle = tasks.filter(review_reason="", state=Task.State.COMPLETE, adjudicated=False, pk__in=unlikely)
    return waiting.update(review_reason="") + idle.update(review_reason=Task.Review.UNLIKELY)
