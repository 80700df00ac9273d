"""Seconds of work are a number that has a meaning, and that every column made from them can hold."""

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("annotator", "0027_active_seconds_clipped")]
    operations = [
        migrations.AddConstraint(
            "annotation",
            models.CheckConstraint(
                condition=Q(active_seconds__isnull=True) | Q(active_seconds__range=(0, 604_800)),
                name="active_seconds_within_a_week",
            ),
        ),
    ]
