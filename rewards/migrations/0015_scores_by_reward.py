"""Scores are found by their reward, for the list of tasks."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("rewards", "0014_snapshot_jobs")]

    operations = [
        migrations.AddIndex(
            model_name="score",
            index=models.Index(fields=["reward_model", "reward"], name="score_by_reward"),
        ),
    ]
