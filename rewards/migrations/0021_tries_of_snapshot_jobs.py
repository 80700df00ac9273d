"""Counts the tries of a snapshot job apart from the number that fences off earlier workers, which only ever grows."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("rewards", "0020_number_of_scores"),
    ]

    operations = [
        migrations.AddField(
            "snapshotjob",
            "tries",
            models.PositiveSmallIntegerField(default=0, help_text="workers that were lost, and the current one"),
        ),
        migrations.AlterField(
            "snapshotjob",
            "attempt",
            models.PositiveSmallIntegerField(default=0, help_text="counts up with each worker"),
        ),
    ]
