"""Registers the machine half with Django."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class RewardsConfig(AppConfig):
    name = "rewards"
    verbose_name = _("Reward models")
    default_auto_field = "django.db.models.BigAutoField"
