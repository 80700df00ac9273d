"""Tasks are leased ahead of being shown, as many as a project and a person want."""

import django.core.validators
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("annotator", "0007_evidence"),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="project",
            name="settings_lie_within_their_bounds",
        ),
        migrations.AddField(
            model_name="assignment",
            name="shift",
            field=models.UUIDField(
                blank=True,
                help_text="the page that holds the lease ahead, before the task is shown; none: it is shown, or was",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="membership",
            name="tasks_ahead",
            field=models.PositiveSmallIntegerField(
                blank=True,
                help_text="Tasks that this person's browser holds ahead. Leave it empty for the project's number.",
                null=True,
                validators=[django.core.validators.MaxValueValidator(20)],
                verbose_name="tasks ready ahead",
            ),
        ),
        migrations.AddField(
            model_name="project",
            name="tasks_ahead",
            field=models.PositiveSmallIntegerField(
                db_default=3,
                default=3,
                help_text="The next tasks, which an annotator's browser holds so that nobody waits for them, also without a network. Never more than an equal share of what is open; 0 means none.",
                validators=[django.core.validators.MaxValueValidator(20)],
                verbose_name="Tasks ready ahead",
            ),
        ),
        migrations.AddConstraint(
            model_name="membership",
            constraint=models.CheckConstraint(
                condition=models.Q(("tasks_ahead__lte", 20)), name="nobody_holds_many_tasks_ahead"
            ),
        ),
        migrations.AddConstraint(
            model_name="project",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("gold_threshold__range", (-1, 1)),
                    ("gold_window__gte", 2),
                    ("lease_minutes__gte", 1),
                    ("qualification_threshold__range", (-1, 1)),
                    ("qualification_tries__gte", 1),
                    ("review_unlikely_percent__lte", 20),
                    ("spread_share__range", (0, 0.9)),
                    ("tasks_ahead__lte", 20),
                    ("validation_share__range", (0.01, 0.5)),
                ),
                name="settings_lie_within_their_bounds",
            ),
        ),
    ]
