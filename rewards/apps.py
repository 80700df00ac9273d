"""Registers the machine half with Django."""

from django.apps import AppConfig


class RewardsConfig(AppConfig):
    name = "rewards"
    verbose_name = "Reward models"
    default_auto_field = "django.db.models.BigAutoField"
