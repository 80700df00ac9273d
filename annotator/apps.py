"""Registers the human half with Django."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class AnnotatorConfig(AppConfig):
    name = "annotator"
    verbose_name = _("Annotation")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Has the store remove what the models say is gone."""
        from annotator.infrastructure.storage import store  # noqa: F401, PLC0415  models must be there first
