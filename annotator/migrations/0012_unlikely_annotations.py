"""Annotations that a model finds unlikely wait for a reviewer."""

import django.core.validators
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("annotator", "0011_uncertain_first"),
    ]

    operations = [
        migrations.AddField(
            model_name="project",
            name="review_unlikely_percent",
            field=models.PositiveSmallIntegerField(
                default=2,
                help_text="share of the annotations, those that a model finds most unlikely, that goes to review; 0: none",
                validators=[django.core.validators.MaxValueValidator(20)],
            ),
        ),
        migrations.AlterField(
            model_name="task",
            name="review_because",
            field=models.CharField(
                blank=True,
                choices=[
                    ("dropped", "Ratings too far apart"),
                    ("safety", "Disagreement on safety"),
                    ("quarantine", "Set aside"),
                    ("unlikely", "Unlikely to the model"),
                ],
                db_default="",
                max_length=12,
            ),
        ),
        migrations.CreateModel(
            name="UnlikelyAnnotation",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("unlikeliness", models.FloatField()),
                ("evidence", models.JSONField(help_text="[{response, attribute, given, expected}], the widest first")),
                ("noted_at", models.DateTimeField()),
                (
                    "annotation",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="unlikely", to="annotator.annotation"
                    ),
                ),
                (
                    "task",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="unlikely_annotations",
                        to="annotator.task",
                    ),
                ),
            ],
        ),
    ]
