"""Leads an annotator from one of their ratings to the one before or after it, in the order of storage."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db.models import Count, OuterRef, QuerySet, Subquery

from annotator.models import Annotation, Assignment, Project, Task, User, Verdict

_LATEST = Verdict.objects.filter(assignment=OuterRef("assignment")).order_by("-pk")


def may_be_changed(task: Task, verdict: Verdict | None) -> bool:
    """Says whether a rating of the task may be revised: not after a reviewer has rejected it."""
    return task.may_be_revised() and not _is_rejected(verdict)


def changeable(ratings: Sequence[Annotation], verdicts: Mapping[int, Verdict]) -> set[int]:
    """Returns the assignments of those ratings that may be revised. The verdicts are those in force by assignment."""
    tasks = {rating.assignment_id: rating.assignment.task for rating in ratings}
    # Counted for all at once, as a page may show many ratings of gold tasks.
    gold = {task.pk for task in tasks.values() if task.state == Task.State.GOLD}
    submitted = Assignment.objects.submitted().filter(task__in=gold).order_by()
    rated = dict(submitted.values_list("task").annotate(n=Count("pk"))) if gold else {}
    return {
        assignment
        for assignment, task in tasks.items()
        if not _is_rejected(verdicts.get(assignment))
        and (task.seems_to_wait(rated.get(task.pk, 0)) if task.pk in gold else task.may_be_revised())
    }


def _is_rejected(verdict: Verdict | None) -> bool:
    return verdict is not None and verdict.decision == Verdict.Decision.REJECTED


def previous_rating(project: Project, annotator: User, *, before: Annotation | None = None) -> int | None:
    """Returns the assignment of the annotator's last rating, or of the last one before `before`.

    It is None if there is none, or if that rating can no longer be changed.
    """
    mine = _ratings(project, annotator)
    earlier = mine if before is None else mine.filter(pk__lt=before.pk)
    return _changeable(earlier.order_by("-pk").first())


def next_rating(project: Project, annotator: User, *, after: Annotation) -> int | None:
    """Returns the assignment of the rating stored after this one; None for the last, or if that one is final."""
    return _changeable(_ratings(project, annotator).filter(pk__gt=after.pk).order_by("pk").first())


def _ratings(project: Project, annotator: User) -> QuerySet[Any]:
    mine = Annotation.objects.current().for_project(project.pk).filter(annotator=annotator)
    latest = Subquery(_LATEST.values("decision")[:1])
    return mine.select_related("assignment__task__project").annotate(latest_decision=latest)


def _changeable(rating: Any) -> int | None:
    # `_ratings` has read the latest verdict in the same query.
    if rating is None or rating.latest_decision == Verdict.Decision.REJECTED:
        return None
    return rating.assignment_id if rating.assignment.task.may_be_revised() else None
