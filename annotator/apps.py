"""Registers the human half with Django."""

from django.apps import AppConfig


class AnnotatorConfig(AppConfig):
    name = "annotator"
    verbose_name = "Annotation"
    default_auto_field = "django.db.models.BigAutoField"
