"""The admin of the human half: accounts, tokens, the audit, and rows to read. Managers see those of their projects."""

from django.contrib import admin
from django_celery_beat import models as beat

from annotator.admin import accounts, audit, gold, rows
from annotator.admin.scoping import FoundByTask, ManagedOnly, OfManagedProjects

# The schedule comes with the code (settings.py); edited by hand, it would be another one on each installation.
for scheduled in (
    beat.PeriodicTask,
    beat.IntervalSchedule,
    beat.CrontabSchedule,
    beat.SolarSchedule,
    beat.ClockedSchedule,
):
    admin.site.unregister(scheduled)
