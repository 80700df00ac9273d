"""Counts what a model could learn from since a project's last run: labels, and preferences without ratings."""

from dataclasses import asdict, dataclass

from django.db.models import Exists, OuterRef, Q

from annotator.models import Label, Project
from annotator.models.in_force import AGREED, compared_alone
from rewards.models import SnapshotTask, TrainingRun
from rewards.reasons import Reason, coded


@dataclass(frozen=True)
class News:
    """The number of new labels, and of unlabelled tasks with a new preference or ranking."""

    labels: int
    preferences: int

    @property
    def total(self) -> int:
        return self.labels + self.preferences

    def reason(self) -> Reason:
        """Returns what is new as a part of the reason of a run."""
        counts = {name: count for name, count in asdict(self).items() if count}
        return coded("_and_".join(counts), **counts)


def news_since(last: TrainingRun | None, project: Project) -> News:
    """Counts what is new since the run was asked for; everything where there was no run."""
    labels = Label.objects.in_force().for_project(project.pk)
    if last:
        labels = labels.filter(made_at__gt=last.created_at)
    tasks = compared_alone(project.tasks.all())
    if last:
        # An imported preference has no time of its own, and a later import may add one to a task that was here before.
        in_snapshot = SnapshotTask.objects.filter(snapshot=last.snapshot_id, task_id=OuterRef("pk"))
        imported = ~Exists(in_snapshot) if last.snapshot_id else Q(created_at__gt=last.created_at)
        agreed = AGREED & Q(consensus__computed_at__gt=last.created_at)
        tasks = tasks.filter(imported | agreed)
    return News(labels.count(), tasks.count())


def unchanged_since(project: Project) -> int | None:
    """Returns the newest version if nothing could be learnt now that it has not learnt."""
    newest = project.reward_models.select_related("run").defer("manifest").order_by("-version").first()
    return newest.version if newest and not news_since(newest.run, project).total else None
