"""Gold tasks in the stream of work: served like any other, rated against the experts, and what follows from that."""

import random
from collections.abc import Mapping
from datetime import datetime

from django.db import transaction

from annotator import audit
from annotator.agreement import AgainstExperts, against_experts
from annotator.models import Annotation, Assignment, Gold, Membership, PauseReason, Project, Rating, Role, Task, User


def is_due(project: Project) -> bool:
    """Whether the next task should be a gold one, by chance: a fixed place in the row would give it away."""
    return project.gold_every > 0 and random.random() * project.gold_every < 1


def next_for(project: Project, annotator: User) -> Task | None:
    """A gold task of the stream that this annotator has not had, locked."""
    states = tuple(Assignment.State.values)
    return (
        Task.objects.filter(project=project, state=Task.State.GOLD, gold__use=Gold.Use.STREAM)
        .untouched_by(annotator.pk, states=states)
        .select_for_update(skip_locked=True, of=("self",))
        .order_by("?")
        .first()
    )


def make_room(task: Task) -> None:
    """A gold task has a slot for everybody."""
    if task.open_slots == 0:
        task.slots_wanted += 1
        task.open_slots += 1
        task.save(update_fields=["slots_wanted", "open_slots"])


def judge(assignment: Assignment, *, now: datetime) -> None:
    """After a gold task: pauses an annotator whose last ones fall below the project's threshold."""
    project = assignment.task.project
    members = Membership.objects.select_for_update().filter(user=assignment.annotator_id, project=project)
    member = members.filter(paused_at__isnull=True, role=Role.ANNOTATOR).first()
    if member is None:
        return
    reached = standing(member)
    if reached and reached.mean is not None and reached.mean < project.gold_threshold:
        with audit.by_the_system():
            pause(member, because=PauseReason.GOLD, now=now)


def standing(member: Membership) -> AgainstExperts | None:
    """The member's agreement with the experts over the last window of gold tasks; None before the window is full."""
    window = member.project.gold_window
    first = Annotation.objects.filter(
        assignment__annotator=member.user_id,
        assignment__task__project=member.project_id,
        assignment__task__gold__use=Gold.Use.STREAM,
        revision=1,
    )
    if member.gold_counts_from:
        first = first.filter(submitted_at__gt=member.gold_counts_from)
    latest = list(first.order_by("-submitted_at").values_list("pk", flat=True)[:window])
    return against_experts(_rated(latest)) if len(latest) == window else None


def _rated(annotations: list[int]) -> list[tuple[Mapping[str, int], Mapping[str, int]]]:
    rows = Rating.objects.filter(annotation__in=annotations, response__expert_rating__isnull=False)
    return list(rows.values_list("scores", "response__expert_rating__scores"))


@transaction.atomic
def pause(member: Membership, *, because: str, now: datetime) -> None:
    """No more tasks for this member until a manager lets them go on. Twice does no harm."""
    going_on = Membership.objects.filter(pk=member.pk, paused_at__isnull=True)
    if going_on.update(paused_at=now, paused_because=because):
        audit.record("membership.paused", f"member {member.user.username}", project=member.project, because=because)


@transaction.atomic
def resume(member: Membership, *, now: datetime) -> None:
    """The member goes on, and gold tasks count from now."""
    Membership.objects.filter(pk=member.pk).update(paused_at=None, paused_because="", gold_counts_from=now)
    audit.record("membership.resumed", f"member {member.user.username}", project=member.project)
