"""What webhooks are told of the machine half, and which projects need which of its workers."""

from collections.abc import Iterable

from django.db.models import Q

from annotator.infrastructure.webhooks.events import announce
from annotator.models import Project
from rewards.models import RewardModel, RunState, TrainingRun


def run_ended(run: TrainingRun, state: RunState) -> None:
    """Announces that the run has ended or waits for a decision. Call it in the transaction that writes the state."""
    announce(run.project, "run.ended", run=run.pk, state=state.value)


def model_promoted(model: RewardModel, *, replaced: int | None) -> None:
    """Announces the new champion, with the version that it replaces if there was one."""
    announce(model.project, "model.promoted", model=model.pk, version=model.version, replaced=replaced)


def projects_that_train() -> Iterable[Project]:
    """Returns the projects that wait for a train worker, or whose policy will."""
    by_policy = Q(retrain_after_labels__gt=0) | Q(retrain_after_hours__gt=0)
    return Project.objects.in_use().filter(by_policy | Q(training_runs__state=RunState.QUEUED)).distinct()


def projects_that_score() -> Iterable[Project]:
    """Returns the projects with a champion, which scores whatever is new."""
    return Project.objects.in_use().filter(reward_models__is_champion=True)


NEEDING = {"train": projects_that_train, "score": projects_that_score}
"""The queues whose workers may be missed, and who misses them."""
