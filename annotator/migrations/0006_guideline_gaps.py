"""Raters say where the guidelines are silent; their tasks wait for a reviewer because of it."""

import django.db.models.deletion
from django.db import migrations, models

REASONS = [
    ("dropped", "Ratings too far apart"),
    ("safety", "Disagreement on safety"),
    ("quarantine", "Set aside"),
    ("unlikely", "Unlikely according to the model"),
    ("silent", "The guidelines are silent"),
]


class Migration(migrations.Migration):
    dependencies = [("annotator", "0005_examples")]
    operations = [
        migrations.AlterField(
            "task", "review_reason", models.CharField(blank=True, choices=REASONS, db_default="", max_length=12)
        ),
        migrations.CreateModel(
            "GuidelineGap",
            [
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("attribute", models.SlugField(blank=True)),
                ("created_at", models.DateTimeField()),
                ("closed_at", models.DateTimeField(blank=True, null=True)),
                (
                    "assignment",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="annotator.assignment",
                    ),
                ),
                (
                    "task",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="annotator.task"
                    ),
                ),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("assignment", "attribute"), name="one_gap_of_a_scale")]
            },
        ),
    ]
