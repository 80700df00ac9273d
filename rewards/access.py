"""Fetches and authorises rows of the machine half in one step, as annotator/reading/access.py does for the other half.

A stranger gets 404, so that nobody learns which ids exist; a member without the right gets 403.
"""

from collections.abc import Callable
from typing import TypeVar

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404

from annotator.models import Project, User
from annotator.reading.access import managed_project, reviewed_project
from rewards.models import Evaluation, EvaluationJob, Policy, RewardModel, Snapshot, SnapshotJob, TrainingRun

Row = TypeVar("Row", Snapshot, SnapshotJob, TrainingRun, RewardModel, Policy)
Judged = TypeVar("Judged", Evaluation, EvaluationJob)


def managed_snapshot(user: User, pk: int) -> Snapshot:
    """Returns a snapshot of a project that the user manages; 403 for the project's other members."""
    return _managed(user, _visible(user, Snapshot.objects.select_related("project"), pk))


def reviewed_snapshot_job(user: User, pk: int) -> SnapshotJob:
    """Returns a request for a snapshot of a project that the user manages or reviews; 403 for its annotators."""
    job = _visible(user, SnapshotJob.objects.select_related("project", "snapshot__project"), pk)
    reviewed_project(user, job.project.slug)
    return job


def managed_run(user: User, pk: int) -> TrainingRun:
    """Returns a training run of a project that the user manages; 403 for the project's other members."""
    return _managed(user, _visible(user, _RUNS.of_rewards(), pk))


def managed_policy_run(user: User, pk: int) -> TrainingRun:
    """Returns a policy run of a project that the user manages; 403 for the project's other members."""
    return _managed(user, _visible(user, _RUNS.of_policies(), pk))


def managed_policy(user: User, pk: int) -> Policy:
    """Returns a policy of a project that the user manages; 403 for the project's other members."""
    return _managed(user, _visible(user, Policy.objects.select_related("project", "run__snapshot", "judge"), pk))


def managed_model(user: User, pk: int, *, models: QuerySet[RewardModel] | None = None) -> RewardModel:
    """Returns a reward model of a project that the user manages; 403 for the project's other members."""
    return _managed(user, _visible(user, _MODELS if models is None else models, pk))


def reviewed_model(user: User, pk: int, *, models: QuerySet[RewardModel] | None = None) -> RewardModel:
    """Returns a reward model of a project that the user manages or reviews; 403 for its annotators."""
    model = _visible(user, _MODELS if models is None else models, pk)
    reviewed_project(user, model.project.slug)
    return model


def reviewed_run(user: User, pk: int) -> TrainingRun:
    """Returns a training run of a project that the user manages or reviews; 403 for its annotators."""
    run = _visible(user, _RUNS.of_rewards(), pk)
    reviewed_project(user, run.project.slug)
    return run


def reviewed_evaluation(user: User, pk: int) -> Evaluation:
    """Returns an evaluation in a project that the user manages or reviews; 403 for its annotators."""
    return _of_model(user, Evaluation.objects.all(), pk, reviewed_project)


def managed_evaluation(user: User, pk: int) -> Evaluation:
    """Returns an evaluation in a project that the user manages; 403 for the project's other members."""
    return _of_model(user, Evaluation.objects.all(), pk, managed_project)


def reviewed_job(user: User, pk: int) -> EvaluationJob:
    """Returns an evaluation job in a project that the user manages or reviews; 403 for its annotators."""
    return _of_model(user, EvaluationJob.objects.all(), pk, reviewed_project)


def managed_job(user: User, pk: int) -> EvaluationJob:
    """Returns an evaluation job in a project that the user manages; 403 for the project's other members."""
    return _of_model(user, EvaluationJob.objects.all(), pk, managed_project)


_RUNS = TrainingRun.objects.select_related("project", "snapshot", "reward_model", "policy")
_MODELS = RewardModel.objects.select_related("project", "run__snapshot")


def _of_model(user: User, rows: QuerySet[Judged], pk: int, permit: Callable[[User, str], Project]) -> Judged:
    visible = Project.objects.visible_to(user)
    row = get_object_or_404(
        rows.select_related("reward_model__project").filter(reward_model__project__in=visible), pk=pk
    )
    permit(user, row.reward_model.project.slug)
    return row


def _visible(user: User, rows: QuerySet[Row], pk: int) -> Row:
    return get_object_or_404(rows.filter(project__in=Project.objects.visible_to(user)), pk=pk)


def _managed(user: User, row: Row) -> Row:
    managed_project(user, row.project.slug)
    return row
