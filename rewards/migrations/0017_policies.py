"""Aligned policies, and the kind of a run that makes one."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("annotator", "0050_imports_from_the_hub"),
        ("rewards", "0016_licences_of_models"),
    ]

    operations = [
        migrations.AddField(
            model_name="trainingrun",
            name="kind",
            field=models.CharField(
                choices=[("reward", "Reward model"), ("policy", "Policy")],
                default="reward",
                max_length=10,
                verbose_name="kind",
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
                    ("done", "Done"),
                ],
                default="queued",
                max_length=20,
                verbose_name="state",
            ),
        ),
        migrations.CreateModel(
            name="Policy",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("version", models.PositiveIntegerField(verbose_name="version")),
                (
                    "base",
                    models.CharField(
                        help_text="A name from the operator's list.", max_length=64, verbose_name="base policy"
                    ),
                ),
                ("method", models.CharField(max_length=20, verbose_name="method")),
                (
                    "path",
                    models.CharField(
                        help_text="Relative to the artifacts folder.", max_length=300, verbose_name="path"
                    ),
                ),
                ("artifact_hash", models.CharField(max_length=64, verbose_name="hash of the artifact")),
                ("manifest", models.JSONField()),
                (
                    "state",
                    models.CharField(
                        choices=[("candidate", "Not judged"), ("offered", "Offered"), ("refused", "Refused")],
                        default="candidate",
                        max_length=10,
                        verbose_name="state",
                    ),
                ),
                ("reason", models.TextField(help_text="Why it is in this state.", verbose_name="reason")),
                ("judgement", models.JSONField(blank=True, default=dict)),
                ("created_at", models.DateTimeField(auto_now_add=True, verbose_name="created at")),
                ("offered_at", models.DateTimeField(blank=True, null=True, verbose_name="offered at")),
                (
                    "judge",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="judged_policies",
                        to="rewards.rewardmodel",
                        verbose_name="judged by",
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="policies",
                        to="annotator.project",
                        verbose_name="project",
                    ),
                ),
                (
                    "run",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.RESTRICT,
                        related_name="policy",
                        to="rewards.trainingrun",
                        verbose_name="training run",
                    ),
                ),
            ],
            options={
                "verbose_name": "policy",
                "verbose_name_plural": "policies",
                "ordering": ["-pk"],
                "constraints": [
                    models.UniqueConstraint(fields=("project", "version"), name="policy_version_once_per_project"),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state", "offered"), _negated=True),
                            ("offered_at__isnull", False),
                            _connector="OR",
                        ),
                        name="offered_policy_says_since_when",
                    ),
                ],
            },
        ),
    ]
