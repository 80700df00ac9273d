"""Chunks of scoring in lanes, and what a score was made from."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("annotator", "0010_policy_of_the_loop"),
        ("rewards", "0002_lineage_and_marks"),
    ]

    operations = [
        migrations.CreateModel(
            name="ScoringLane",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveSmallIntegerField()),
                ("turn", models.PositiveIntegerField(default=0)),
                ("first_task", models.BigIntegerField(null=True)),
                ("last_task", models.BigIntegerField(null=True)),
                ("moved_at", models.DateTimeField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name="ScoringPass",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("handed_out", models.BigIntegerField(default=0)),
                ("began_at", models.DateTimeField()),
                ("error", models.TextField(blank=True)),
            ],
        ),
        migrations.AddField(
            model_name="score",
            name="token_key",
            field=models.UUIDField(null=True),
        ),
        migrations.AddField(
            model_name="score",
            name="uncertainty",
            field=models.FloatField(null=True),
        ),
        migrations.AddIndex(
            model_name="score",
            index=models.Index(fields=["reward_model", "token_key"], name="score_by_tokens"),
        ),
        migrations.AddField(
            model_name="scoringpass",
            name="reward_model",
            field=models.OneToOneField(
                on_delete=django.db.models.deletion.CASCADE, related_name="scoring_pass", to="rewards.rewardmodel"
            ),
        ),
        migrations.AddField(
            model_name="scoringlane",
            name="scoring_pass",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="lanes", to="rewards.scoringpass"
            ),
        ),
        migrations.AddConstraint(
            model_name="scoringlane",
            constraint=models.UniqueConstraint(fields=("scoring_pass", "number"), name="lane_number_once_per_pass"),
        ),
    ]
