"""Lists what waits for a reviewer, the widest spread first, and the latest submissions; pages continue after a key."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Left

from annotator.infrastructure.db.retries import in_transaction
from annotator.infrastructure.web.query_parameters import as_number
from annotator.models import Annotation, Assignment, Project, Response, Task, UnlikelyAnnotation, User, Verdict
from annotator.reading.blindness import tasks_held_by

RESPONSE_BEGINNING = 1_000
MOST_COUNTED = 1_000
WIDEST_SPREAD = 9_999


@dataclass(frozen=True)
class QueueKey:
    """A task's place in the queue, after which the next page begins."""

    spread: int
    task: int

    @classmethod
    def of(cls, task: Task) -> "QueueKey":
        return cls(task.review_spread, task.pk)

    @classmethod
    def read(cls, text: str) -> "QueueKey | None":
        """Reads a place from the text in a URL; returns None for anything that is not a place."""
        spread, _, task = text.partition(".")
        wide, pk = as_number(spread, most=WIDEST_SPREAD), as_number(task)
        return cls(wide, pk) if wide is not None and pk is not None else None

    def __str__(self) -> str:
        return f"{self.spread}.{self.task}"


def waiting(project: Project, *, reason: str = "") -> QuerySet[Task]:
    """Returns the tasks in the order of the queue, all or those with one reason."""
    tasks = project.tasks.disputed()
    return tasks.filter(review_reason=reason) if reason else tasks


def queue_from(tasks: QuerySet[Any], *, after: QueueKey | None = None, size: int) -> list[Any]:
    """Returns up to `size` tasks from the head of the queue, or after a place."""
    if after is None:
        return list(tasks[:size])
    # Two reads, each of which starts at its first row in the index: the spread descends while the id ascends, so no
    # single range of the index holds what follows, and thousands of tasks may have the same spread.
    alike = list(tasks.filter(review_spread=after.spread, pk__gt=after.task)[:size])
    return alike + list(tasks.filter(review_spread__lt=after.spread)[: size - len(alike)])


def decidable_by(tasks: QuerySet[Task], reviewer: User, *, manages: bool) -> QuerySet[Task]:
    """Selects those that the reviewer may decide: quarantined tasks are for managers, one's own work is for others."""
    counting = Assignment.objects.submitted().filter(task=OuterRef("pk"), counts=True)
    by_others = Exists(counting.exclude(annotator=reviewer)) | ~Exists(counting)
    tasks = tasks.exclude(pk__in=tasks_held_by(reviewer))
    if not manages:
        return tasks.exclude(state=Task.State.QUARANTINED).filter(by_others)
    return tasks.filter(Q(state=Task.State.QUARANTINED) | by_others)


def next_waiting(project: Project, *, reason: str = "", after: QueueKey, reviewer: User, manages: bool) -> Task | None:
    """Returns the next task after the place that the reviewer may decide, else the first from the head of the queue.

    It is never the task at the place itself.
    """
    tasks = decidable_by(waiting(project, reason=reason), reviewer, manages=manages).only("pk", "review_spread")
    tasks_after = queue_from(tasks, after=after, size=1) or queue_from(tasks.exclude(pk=after.task), size=1)
    return tasks_after[0] if tasks_after else None


def how_many_wait(project: Project) -> int:
    """Counts the tasks that wait, up to MOST_COUNTED + 1, which stands for any larger number: a page need not wait."""
    return project.tasks.disputed().values("pk")[: MOST_COUNTED + 1].count()


def submissions(project: Project, *, reviewer: User) -> QuerySet[Annotation]:
    """Returns the current annotations, newest first, without those of tasks that the reviewer is rating.

    Those of gold tasks are left out as well: they are compared with the experts' and not reviewed.
    """
    annotations = Annotation.objects.current().for_project(project.pk)
    annotations = annotations.exclude(assignment__task__in=tasks_held_by(reviewer))
    return annotations.exclude(assignment__task__state=Task.State.GOLD).order_by("-pk")


def unjudged(annotations: QuerySet[Annotation], reviewer: User) -> QuerySet[Annotation]:
    """Selects those that nobody has accepted or rejected yet, and that are not the reviewer's own."""
    verdicts = Verdict.objects.filter(assignment=OuterRef("assignment"))
    return annotations.filter(~Exists(verdicts)).exclude(annotator=reviewer)


def judged(annotations: QuerySet[Annotation], decision: str) -> QuerySet[Annotation]:
    """Selects those whose latest verdict is this decision."""
    later = Verdict.objects.filter(assignment=OuterRef("assignment"), pk__gt=OuterRef("pk"))
    in_force = Verdict.objects.filter(~Exists(later), decision=decision)
    return annotations.filter(assignment__in=in_force.values("assignment"))


def beginnings_of_responses(tasks: Sequence[int]) -> QuerySet[Any]:
    """Returns the responses of the tasks, each with `beginning` instead of its text."""
    responses = Response.objects.filter(task__in=tasks).defer("text").order_by("task", "position")
    return responses.annotate(beginning=Left("text", RESPONSE_BEGINNING))


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
