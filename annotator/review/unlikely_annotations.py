"""Annotations that a model finds unlikely, in the queue as long as nobody has looked. The machine half notes them."""

from django.db.models import QuerySet

from annotator.db.retries import in_transaction
from annotator.models import Task, UnlikelyAnnotation


@in_transaction
def ask_for_review(tasks: QuerySet[Task]) -> int:
    """Lets those of the tasks wait for a reviewer that hold such an annotation, and the others no more.

    What makes a task wait otherwise goes first, and whatever settles the task anew takes its reason away until this is
    called again. Returns how many tasks changed.
    """
    unlikely = UnlikelyAnnotation.objects.in_force().filter(task__in=tasks).values("task")
    waiting = tasks.filter(review_because=Task.Review.UNLIKELY).exclude(pk__in=unlikely)
    idle = tasks.filter(review_because="", state=Task.State.COMPLETE, adjudicated=False, pk__in=unlikely)
    return waiting.update(review_because="") + idle.update(review_because=Task.Review.UNLIKELY)
