"""Untouched tasks come by priority alone: an order by the model's uncertainty saved no labels."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("annotator", "0033_an_open_task_has_no_consensus"),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="task",
            name="doubt_from_0_to_9",
        ),
        migrations.RemoveIndex(
            model_name="task",
            name="task_untouched",
        ),
        migrations.RemoveIndex(
            model_name="task",
            name="task_untouched_by_language",
        ),
        migrations.RemoveField(
            model_name="project",
            name="queue_order",
        ),
        migrations.RemoveField(
            model_name="task",
            name="doubt",
        ),
        migrations.AddIndex(
            model_name="task",
            index=models.Index(
                condition=models.Q(("begun", False), ("open_slots__gt", 0), ("state", "open")),
                fields=["project", "-priority", "shuffle"],
                name="task_untouched",
            ),
        ),
        migrations.AddIndex(
            model_name="task",
            index=models.Index(
                condition=models.Q(
                    ("begun", False),
                    ("open_slots__gt", 0),
                    ("state", "open"),
                    models.Q(("language", ""), _negated=True),
                ),
                fields=["project", "language", "-priority", "shuffle"],
                name="task_untouched_by_language",
            ),
        ),
    ]
