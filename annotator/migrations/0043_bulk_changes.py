"""Changes of many tasks at once, with what each task was before."""

import django.contrib.postgres.fields
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("annotator", "0042_assignments_of_an_annotator_in_order"),
    ]

    operations = [
        migrations.CreateModel(
            name="BulkChange",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "action",
                    models.CharField(
                        choices=[
                            ("priority", "Set the priority"),
                            ("retire", "Retire"),
                            ("reopen", "Bring back into use"),
                            ("release", "Quarantine: false alarm, release"),
                            ("uphold", "Quarantine: justified, retire"),
                        ],
                        max_length=10,
                    ),
                ),
                (
                    "priority",
                    models.SmallIntegerField(blank=True, help_text="the new one, where the action sets it", null=True),
                ),
                ("made_at", models.DateTimeField()),
                ("chosen", models.PositiveIntegerField(help_text="tasks that were chosen")),
                ("changed", models.PositiveIntegerField(default=0, help_text="tasks that the action applied to")),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                ("undo_asked_at", models.DateTimeField(blank=True, null=True)),
                ("put_back", models.PositiveIntegerField(default=0, help_text="tasks that are as before again")),
                ("undone_at", models.DateTimeField(blank=True, null=True)),
                (
                    "by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="bulk_changes",
                        to="annotator.project",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="ChangedTask",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("applied", models.BooleanField(null=True)),
                ("state", models.CharField(blank=True, help_text="the task's state before", max_length=12)),
                ("priority", models.SmallIntegerField(default=0, help_text="the task's priority before")),
                (
                    "reports",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(), default=list, size=None
                    ),
                ),
                ("put_back", models.BooleanField(null=True)),
                (
                    "change",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="tasks",
                        to="annotator.bulkchange",
                    ),
                ),
                (
                    "task",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="bulk_changes", to="annotator.task"
                    ),
                ),
            ],
        ),
        migrations.AddIndex(
            model_name="bulkchange",
            index=models.Index(fields=["project", "-id"], name="bulk_change_by_project"),
        ),
        migrations.AddIndex(
            model_name="bulkchange",
            index=models.Index(
                condition=models.Q(
                    ("finished_at", None),
                    models.Q(("undo_asked_at__isnull", False), ("undone_at", None)),
                    _connector="OR",
                ),
                fields=["id"],
                name="bulk_change_unfinished",
            ),
        ),
        migrations.AddConstraint(
            model_name="bulkchange",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("action", "priority"), ("priority__isnull", False)),
                    models.Q(models.Q(("action", "priority"), _negated=True), ("priority", None)),
                    _connector="OR",
                ),
                name="a_priority_where_one_is_set",
            ),
        ),
        migrations.AddConstraint(
            model_name="bulkchange",
            constraint=models.CheckConstraint(
                condition=models.Q(("undone_at", None), ("undo_asked_at__isnull", False), _connector="OR"),
                name="undone_once_asked",
            ),
        ),
        migrations.AddConstraint(
            model_name="bulkchange",
            constraint=models.CheckConstraint(
                condition=models.Q(("changed__lte", models.F("chosen")), ("put_back__lte", models.F("changed"))),
                name="no_more_than_chosen",
            ),
        ),
        migrations.AddConstraint(
            model_name="changedtask",
            constraint=models.UniqueConstraint(fields=("change", "task"), name="task_once_per_bulk_change"),
        ),
        migrations.AddConstraint(
            model_name="changedtask",
            constraint=models.CheckConstraint(
                condition=models.Q(("put_back", None), ("applied", True), _connector="OR"),
                name="put_back_what_was_applied",
            ),
        ),
    ]
