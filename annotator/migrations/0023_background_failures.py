"""Failures of background work, work that is asked for, and whose files the artifacts are."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("annotator", "0022_tokens_and_demo_accounts_of_before"),
    ]

    operations = [
        migrations.AddField(
            model_name="exclusion",
            name="readmitted_at",
            field=models.DateTimeField(blank=True, help_text="since then their work is being brought back", null=True),
        ),
        migrations.CreateModel(
            name="Installation",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("artifacts_id", models.UUIDField()),
            ],
            options={
                "constraints": [models.CheckConstraint(condition=models.Q(("pk", 1)), name="one_installation")],
            },
        ),
        migrations.CreateModel(
            name="RecountWanted",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="recounts_wanted",
                        to="annotator.project",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="BackgroundFailure",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("task", models.CharField(max_length=60)),
                ("first_at", models.DateTimeField()),
                ("last_at", models.DateTimeField()),
                ("times", models.PositiveIntegerField(default=1)),
                ("error", models.CharField(help_text="of the last time, without secrets", max_length=500)),
                (
                    "project",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="background_failures",
                        to="annotator.project",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("task", "project"), name="one_failure_per_task_and_project", nulls_distinct=False
                    )
                ],
            },
        ),
    ]
