"""Keeps with an evaluation job how far it is."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("rewards", "0022_precision_of_scores"),
    ]

    operations = [
        migrations.AddField(
            "evaluationjob",
            "progress",
            models.JSONField(blank=True, default=dict, help_text="the newest event of the process that measures"),
        ),
    ]
