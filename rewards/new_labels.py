"""What has come since a project's last run that a model could learn from: labels, and preferences without ratings."""

from dataclasses import dataclass

from django.db.models import Exists, OuterRef, Q

from annotator.models import Label, Project
from rewards import snapshots
from rewards.models import SnapshotTask, TrainingRun


@dataclass(frozen=True)
class News:
    """New labels, and tasks with a new preference or ranking that have no label."""

    labels: int
    preferences: int

    @property
    def total(self) -> int:
        return self.labels + self.preferences

    def __str__(self) -> str:
        parts = ((self.labels, "new labels"), (self.preferences, "new preferences"))
        return " and ".join(f"{count} {what}" for count, what in parts if count)


def news_since(last: TrainingRun | None, project: Project) -> News:
    """Counted from the moment that the run was asked for; all there is where there was none."""
    labels = Label.objects.in_force().for_project(project.pk)
    if last:
        labels = labels.filter(made_at__gt=last.created_at)
    return News(labels.count(), _preferences(last, project))


def _preferences(last: TrainingRun | None, project: Project) -> int:
    responses = snapshots.preferred_alone(project)
    if last:
        # An imported preference has no time of its own, and may come to a task that was here before it.
        seen = SnapshotTask.objects.filter(snapshot=last.snapshot_id, task_id=OuterRef("task"))
        imported = ~Exists(seen) if last.snapshot_id else Q(task__created_at__gt=last.created_at)
        agreed = snapshots.AGREED & Q(task__consensus__computed_at__gt=last.created_at)
        responses = responses.filter(imported | agreed)
    return responses.values("task").distinct().count()
