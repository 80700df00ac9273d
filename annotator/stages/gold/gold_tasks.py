"""Compares what annotators answer to gold tasks with the experts' answers, and pauses annotators."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import transaction

from annotator.infrastructure import audit
from annotator.models import Annotation, Assignment, Gold, Membership, PauseReason, Rating, Role
from annotator.statistics.measures import AgainstExperts, against_experts


def judge(assignment: Assignment, *, now: datetime) -> None:
    """Pauses an annotator whose latest gold tasks fall below the project's threshold; called after each gold task."""
    project = assignment.task.project
    members = Membership.objects.select_for_update().filter(user=assignment.annotator_id, project=project)
    member = members.filter(paused_at__isnull=True, role=Role.ANNOTATOR).first()
    if member is None:
        return
    reached = standing(member)
    if reached and reached.mean is not None and reached.mean < project.gold_threshold:
        with audit.by_the_system():
            pause(member, reason=PauseReason.GOLD, now=now)


def standing(member: Membership) -> AgainstExperts | None:
    """Returns the agreement with the experts over the member's latest gold tasks, or None before a window is full."""
    window = member.project.gold_window
    # First revisions only: a gold rating can be corrected like any other, but that must not mend the standing.
    first = Annotation.objects.filter(
        assignment__annotator=member.user_id,
        project=member.project_id,
        assignment__task__gold__use=Gold.Use.STREAM,
        revision=1,
    )
    if member.gold_counts_from:
        first = first.filter(submitted_at__gt=member.gold_counts_from)
    latest = list(first.order_by("-submitted_at").values_list("pk", flat=True)[:window])
    # Agreement over a few tasks is mostly chance, and must not pause anybody.
    if len(latest) < window:
        return None
    ratings = Rating.objects.filter(annotation__in=latest, response__expert_rating__isnull=False)
    mine = ("scores", "annotation__aspects", "segment_scores", "cut")
    return against_experts(list(beside_experts(ratings.values_list(*mine, *EXPERTS))))


@transaction.atomic
def pause(member: Membership, *, reason: str, now: datetime) -> None:
    """Gives this member no more tasks until a manager resumes them. A second call changes nothing."""
    # Conditional, so that of two pauses at once only one is written and audited, and the first reason stays.
    active = Membership.objects.filter(pk=member.pk, paused_at__isnull=True)
    if active.update(paused_at=now, pause_reason=reason):
        audit.record("membership.paused", f"member {member.user.username}", project=member.project, because=reason)


@transaction.atomic
def resume(member: Membership, *, now: datetime) -> None:
    """Lets the member go on. Only gold tasks rated from now on count, or the old ones would pause them again."""
    Membership.objects.filter(pk=member.pk).update(paused_at=None, pause_reason="", gold_counts_from=now)
    audit.record("membership.resumed", f"member {member.user.username}", project=member.project)


Scores = Mapping[str, int]
EXPERTS = tuple(f"response__expert_rating__{name}" for name in ("scores", "aspects", "segment_scores"))


def beside_experts(rows: Iterable[Sequence[Any]]) -> Iterator[tuple[Scores, Scores]]:
    """Yields somebody's scores with the experts', of responses and of segments.

    A row is (scores, aspects, segment scores, own cut) of the answer, then scores, aspects and segment scores of the
    experts. Segments of an own cut are not the experts', and are left out; so is an aspect that does not apply.
    """
    for scores, aspects, segments, cut, experts, experts_aspects, experts_segments in rows:
        yield scores, experts
        if not segments or not experts_segments or cut:
            continue
        for mine, theirs in zip(segments, experts_segments, strict=False):
            yield _given(aspects, mine), _given(experts_aspects, theirs)


def _given(aspects: Sequence[str], row: Sequence[int | None]) -> dict[str, int]:
    return {aspect: score for aspect, score in zip(aspects, row, strict=True) if score is not None}
