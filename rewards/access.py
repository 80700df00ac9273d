"""Which rows of the machine half somebody may reach, fetched and authorised in one step as in annotator/access.py."""

from typing import TypeVar

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404

from annotator.access import managed_project, reviewed_project
from annotator.models import Project, User
from rewards.models import RewardModel, Snapshot, TrainingRun

Row = TypeVar("Row", Snapshot, TrainingRun, RewardModel)


def managed_snapshot(user: User, pk: int) -> Snapshot:
    """A snapshot of a project that the user manages; 403 for the project's other members."""
    return _managed(user, _visible(user, Snapshot.objects.select_related("project"), pk))


def managed_run(user: User, pk: int) -> TrainingRun:
    """A training run of a project that the user manages; 403 for the project's other members."""
    return _managed(user, _visible(user, _RUNS, pk))


def managed_model(user: User, pk: int, *, models: QuerySet[RewardModel] | None = None) -> RewardModel:
    """A reward model of a project that the user manages; 403 for the project's other members."""
    return _managed(user, _visible(user, _MODELS if models is None else models, pk))


def reviewed_run(user: User, pk: int) -> TrainingRun:
    """A training run of a project that the user manages or reviews; 403 for its annotators."""
    run = _visible(user, _RUNS, pk)
    reviewed_project(user, run.project.slug)
    return run


_RUNS = TrainingRun.objects.select_related("project", "snapshot", "reward_model")
_MODELS = RewardModel.objects.select_related("project", "run__snapshot")


def _visible(user: User, rows: QuerySet[Row], pk: int) -> Row:
    return get_object_or_404(rows.filter(project__in=Project.objects.visible_to(user)), pk=pk)


def _managed(user: User, row: Row) -> Row:
    managed_project(user, row.project.slug)
    return row
