"""Labels and explanations of fields, as the admin shows them in each language; nothing in the database changes."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from annotator.db.label_migrations import Relabel


class Migration(migrations.Migration):
    dependencies = [
        ("annotator", "0032_labels_in_plain_words"),
        ("rewards", "0010_unlikely_noted_before"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        Relabel(
            [
                migrations.AlterModelOptions(
                    name="rewardmodel",
                    options={
                        "ordering": ["-pk"],
                        "verbose_name": "reward model",
                        "verbose_name_plural": "reward models",
                    },
                ),
                migrations.AlterModelOptions(
                    name="score",
                    options={"verbose_name": "score", "verbose_name_plural": "scores"},
                ),
                migrations.AlterModelOptions(
                    name="snapshot",
                    options={"ordering": ["-pk"], "verbose_name": "snapshot", "verbose_name_plural": "snapshots"},
                ),
                migrations.AlterModelOptions(
                    name="trainingrun",
                    options={
                        "ordering": ["-pk"],
                        "verbose_name": "training run",
                        "verbose_name_plural": "training runs",
                    },
                ),
                migrations.AlterField(
                    model_name="rewardmodel",
                    name="attribute_weights",
                    field=models.JSONField(verbose_name="attribute weights"),
                ),
                migrations.AlterField(
                    model_name="rewardmodel",
                    name="created_at",
                    field=models.DateTimeField(auto_now_add=True, verbose_name="created at"),
                ),
                migrations.AlterField(
                    model_name="rewardmodel",
                    name="is_champion",
                    field=models.BooleanField(default=False, verbose_name="is the champion"),
                ),
                migrations.AlterField(
                    model_name="rewardmodel",
                    name="path",
                    field=models.CharField(
                        help_text="Relative to the artifacts folder.", max_length=300, verbose_name="path"
                    ),
                ),
                migrations.AlterField(
                    model_name="rewardmodel",
                    name="project",
                    field=models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="reward_models",
                        to="annotator.project",
                        verbose_name="project",
                    ),
                ),
                migrations.AlterField(
                    model_name="rewardmodel",
                    name="promoted_at",
                    field=models.DateTimeField(blank=True, null=True, verbose_name="promoted at"),
                ),
                migrations.AlterField(
                    model_name="rewardmodel",
                    name="run",
                    field=models.OneToOneField(
                        on_delete=django.db.models.deletion.RESTRICT,
                        related_name="reward_model",
                        to="rewards.trainingrun",
                        verbose_name="training run",
                    ),
                ),
                migrations.AlterField(
                    model_name="rewardmodel",
                    name="version",
                    field=models.PositiveIntegerField(verbose_name="version"),
                ),
                migrations.AlterField(
                    model_name="score",
                    name="response",
                    field=models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="model_scores",
                        to="annotator.response",
                        verbose_name="response",
                    ),
                ),
                migrations.AlterField(
                    model_name="score",
                    name="reward",
                    field=models.FloatField(verbose_name="reward"),
                ),
                migrations.AlterField(
                    model_name="score",
                    name="reward_model",
                    field=models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="scores",
                        to="rewards.rewardmodel",
                        verbose_name="reward model",
                    ),
                ),
                migrations.AlterField(
                    model_name="score",
                    name="scores",
                    field=models.JSONField(verbose_name="scores"),
                ),
                migrations.AlterField(
                    model_name="score",
                    name="token_key",
                    field=models.UUIDField(null=True, verbose_name="token key"),
                ),
                migrations.AlterField(
                    model_name="score",
                    name="uncertainty",
                    field=models.FloatField(null=True, verbose_name="uncertainty"),
                ),
                migrations.AlterField(
                    model_name="snapshot",
                    name="content_hash",
                    field=models.CharField(max_length=64, verbose_name="content hash"),
                ),
                migrations.AlterField(
                    model_name="snapshot",
                    name="created_at",
                    field=models.DateTimeField(auto_now_add=True, verbose_name="created at"),
                ),
                migrations.AlterField(
                    model_name="snapshot",
                    name="labels",
                    field=models.PositiveIntegerField(help_text="Labelled responses.", verbose_name="labels"),
                ),
                migrations.AlterField(
                    model_name="snapshot",
                    name="manifest",
                    field=models.JSONField(verbose_name="manifest"),
                ),
                migrations.AlterField(
                    model_name="snapshot",
                    name="path",
                    field=models.CharField(
                        help_text="Relative to the artifacts folder.", max_length=300, verbose_name="path"
                    ),
                ),
                migrations.AlterField(
                    model_name="snapshot",
                    name="project",
                    field=models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="snapshots",
                        to="annotator.project",
                        verbose_name="project",
                    ),
                ),
                migrations.AlterField(
                    model_name="snapshot",
                    name="train_tasks",
                    field=models.PositiveIntegerField(verbose_name="training tasks"),
                ),
                migrations.AlterField(
                    model_name="snapshot",
                    name="validation_tasks",
                    field=models.PositiveIntegerField(verbose_name="validation tasks"),
                ),
                migrations.AlterField(
                    model_name="trainingrun",
                    name="attempt",
                    field=models.PositiveSmallIntegerField(default=0, verbose_name="attempt"),
                ),
                migrations.AlterField(
                    model_name="trainingrun",
                    name="code_version",
                    field=models.CharField(blank=True, max_length=40, verbose_name="code version"),
                ),
                migrations.AlterField(
                    model_name="trainingrun",
                    name="config_hash",
                    field=models.CharField(blank=True, max_length=64, verbose_name="hash of the settings"),
                ),
                migrations.AlterField(
                    model_name="trainingrun",
                    name="created_at",
                    field=models.DateTimeField(auto_now_add=True, verbose_name="created at"),
                ),
                migrations.AlterField(
                    model_name="trainingrun",
                    name="finished_at",
                    field=models.DateTimeField(blank=True, null=True, verbose_name="finished at"),
                ),
                migrations.AlterField(
                    model_name="trainingrun",
                    name="project",
                    field=models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="training_runs",
                        to="annotator.project",
                        verbose_name="project",
                    ),
                ),
                migrations.AlterField(
                    model_name="trainingrun",
                    name="reason",
                    field=models.CharField(help_text="Why the run was started.", max_length=200, verbose_name="reason"),
                ),
                migrations.AlterField(
                    model_name="trainingrun",
                    name="requested_by",
                    field=models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="requested by",
                    ),
                ),
                migrations.AlterField(
                    model_name="trainingrun",
                    name="seed",
                    field=models.PositiveIntegerField(default=0, verbose_name="seed"),
                ),
                migrations.AlterField(
                    model_name="trainingrun",
                    name="snapshot",
                    field=models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.RESTRICT,
                        related_name="runs",
                        to="rewards.snapshot",
                        verbose_name="snapshot",
                    ),
                ),
                migrations.AlterField(
                    model_name="trainingrun",
                    name="state",
                    field=models.CharField(
                        choices=[
                            ("queued", "Queued"),
                            ("snapshotting", "Snapshotting"),
                            ("training", "Training"),
                            ("evaluating", "Evaluating"),
                            ("awaiting_promotion", "Awaiting Promotion"),
                            ("promoted", "Promoted"),
                            ("rejected", "Rejected"),
                            ("failed", "Failed"),
                            ("cancelled", "Cancelled"),
                        ],
                        default="queued",
                        max_length=20,
                        verbose_name="state",
                    ),
                ),
                migrations.AlterField(
                    model_name="trainingrun",
                    name="worker",
                    field=models.CharField(blank=True, max_length=200, verbose_name="worker"),
                ),
            ]
        )
    ]
