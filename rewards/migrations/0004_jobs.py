"""Snapshot jobs say when their worker was last alive, and evaluation jobs count lost workers apart from attempts."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("rewards", "0003_reasons_as_codes")]
    operations = [
        migrations.AddField("snapshotjob", "heartbeat_at", models.DateTimeField(blank=True, null=True)),
        migrations.AddField(
            "evaluationjob",
            "tries",
            models.PositiveSmallIntegerField(default=0, help_text="workers that were lost, and the current one"),
        ),
        *(
            migrations.AlterField(
                model, "attempt", models.PositiveIntegerField(default=0, help_text="counts up with each worker")
            )
            for model in ("snapshotjob", "evaluationjob")
        ),
        *(
            migrations.AlterField("evaluationjob", name, models.DateTimeField(blank=True, null=True))
            for name in ("heartbeat_at", "finished_at")
        ),
    ]
