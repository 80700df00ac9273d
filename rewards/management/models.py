"""Finds the reward model that a command names."""

from django.core.management.base import CommandError

from rewards.models import RewardModel


def named_model(pk: int) -> RewardModel:
    """Returns the model with this id; raises CommandError where there is none."""
    model = RewardModel.objects.select_related("run__snapshot", "project").filter(pk=pk).first()
    if model is None:
        raise CommandError(f"There is no reward model {pk}.")
    return model
