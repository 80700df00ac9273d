"""The order of untouched tasks: after priority, what the reward model is least certain of."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("annotator", "0010_policy_of_the_loop"),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name="task",
            name="task_untouched",
        ),
        migrations.RemoveIndex(
            model_name="task",
            name="task_untouched_by_language",
        ),
        migrations.AddField(
            model_name="project",
            name="queue_order",
            field=models.CharField(
                choices=[
                    ("priority", "By priority"),
                    ("uncertain", "By priority, then what the model is least certain of"),
                ],
                default="priority",
                help_text="which untouched task comes next; the model's uncertainty is known of tasks that it has scored",
                max_length=9,
            ),
        ),
        migrations.AddField(
            model_name="task",
            name="doubt",
            field=models.SmallIntegerField(db_default=0),
        ),
        migrations.AlterField(
            model_name="task",
            name="project",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="tasks",
                to="annotator.project",
            ),
        ),
        migrations.AddIndex(
            model_name="task",
            index=models.Index(fields=["project", "id"], name="task_by_project"),
        ),
        migrations.AddIndex(
            model_name="task",
            index=models.Index(
                condition=models.Q(("begun", False), ("open_slots__gt", 0), ("state", "open")),
                fields=["project", "-priority", "-doubt", "shuffle"],
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
                fields=["project", "language", "-priority", "-doubt", "shuffle"],
                name="task_untouched_by_language",
            ),
        ),
        migrations.AddConstraint(
            model_name="task",
            constraint=models.CheckConstraint(condition=models.Q(("doubt__range", (0, 9))), name="doubt_from_0_to_9"),
        ),
    ]
