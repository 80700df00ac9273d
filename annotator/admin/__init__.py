"""The admin of the human half. Managers are staff who see their own projects; superusers see all."""

from django.contrib import admin
from django_celery_beat import models as beat

from annotator.admin import accounts, annotations, audit, exclusions, gold, handed_out, people, projects, tasks
from annotator.admin.scoping import FoundByTask, ManagedOnly, OfManagedProjects

__all__ = [
    "FoundByTask",
    "ManagedOnly",
    "OfManagedProjects",
    "accounts",
    "annotations",
    "audit",
    "exclusions",
    "gold",
    "handed_out",
    "people",
    "projects",
    "tasks",
]

# The schedule comes with the code (settings.py); edited by hand, it would be another one on each installation.
for scheduled in (
    beat.PeriodicTask,
    beat.IntervalSchedule,
    beat.CrontabSchedule,
    beat.SolarSchedule,
    beat.ClockedSchedule,
):
    admin.site.unregister(scheduled)
