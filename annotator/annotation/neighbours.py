"""The ratings before and after one's own, by the order in which they were stored."""

from django.db.models import QuerySet

from annotator.models import Annotation, Project, Task, User, Verdict


def may_be_changed(task: Task, verdict: Verdict | None) -> bool:
    """What a reviewer has rejected stays as it is."""
    rejected = verdict is not None and verdict.decision == Verdict.Decision.REJECTED
    return task.may_be_revised() and not rejected


def previous_rating(project: Project, annotator: User, *, before: Annotation | None = None) -> int | None:
    """The assignment of the annotator's last rating, or of the one before; None where it can no longer be changed."""
    mine = _ratings(project, annotator)
    earlier = mine if before is None else mine.filter(pk__lt=before.pk)
    return _changeable(earlier.order_by("-pk").first())


def next_rating(project: Project, annotator: User, *, after: Annotation) -> int | None:
    """The assignment of the rating stored after this one, or None where it is the last, or can no longer be changed."""
    return _changeable(_ratings(project, annotator).filter(pk__gt=after.pk).order_by("pk").first())


def _ratings(project: Project, annotator: User) -> QuerySet[Annotation]:
    mine = Annotation.objects.current().for_project(project.pk).filter(assignment__annotator=annotator)
    return mine.select_related("assignment__task__project")


def _changeable(found: Annotation | None) -> int | None:
    if found is None:
        return None
    held = found.assignment
    return held.pk if may_be_changed(held.task, held.verdicts.order_by("-pk").first()) else None
