"""Drops the indexes of foreign keys with which another index of the table begins: one to write less for each row."""

import django.db.models.deletion
from django.db import migrations, models

INDEXES = {
    "rewards_evaluation_reward_model_id_4164c2dc": ("rewards_evaluation", "reward_model_id"),
    "rewards_policy_project_id_0f48fd8d": ("rewards_policy", "project_id"),
    "rewards_rewardmodel_project_id_cc43e279": ("rewards_rewardmodel", "project_id"),
    "rewards_scoringlane_scoring_pass_id_0f44853c": ("rewards_scoringlane", "scoring_pass_id"),
    "rewards_snapshot_project_id_bdfd96f8": ("rewards_snapshot", "project_id"),
}


class Migration(migrations.Migration):
    dependencies = [
        ("annotator", "0053_drop_redundant_indexes"),
        ("rewards", "0018_segment_scores"),
    ]

    operations = [
        # By their names: Django would drop every index of such a column alone, those of constraints included.
        *(
            migrations.RunSQL(f"DROP INDEX {name}", f"CREATE INDEX {name} ON {table} ({column})")
            for name, (table, column) in INDEXES.items()
        ),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    model_name="evaluation",
                    name="reward_model",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="evaluations",
                        to="rewards.rewardmodel",
                    ),
                ),
                migrations.AlterField(
                    model_name="policy",
                    name="project",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="policies",
                        to="annotator.project",
                        verbose_name="project",
                    ),
                ),
                migrations.AlterField(
                    model_name="rewardmodel",
                    name="project",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="reward_models",
                        to="annotator.project",
                        verbose_name="project",
                    ),
                ),
                migrations.AlterField(
                    model_name="scoringlane",
                    name="scoring_pass",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="lanes",
                        to="rewards.scoringpass",
                    ),
                ),
                migrations.AlterField(
                    model_name="snapshot",
                    name="project",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="snapshots",
                        to="annotator.project",
                        verbose_name="project",
                    ),
                ),
            ]
        ),
    ]
