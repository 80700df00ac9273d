"""Notes with each model in which precision its stored scores are computed."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("rewards", "0021_tries_of_snapshot_jobs"),
    ]

    operations = [
        migrations.AddField(
            "rewardmodel",
            "score_precision",
            models.CharField(
                blank=True,
                db_default="",
                default="",
                editable=False,
                help_text="what all its stored scores are computed in; empty before the first, and where nobody noted it",
                max_length=10,
            ),
        ),
    ]
