"""Orders untouched tasks so that those searched for personal information are handed out first."""

from django.db import migrations, models

UNSCANNED = models.ExpressionWrapper(models.Q(("pii_scanned_at__isnull", True)), output_field=models.BooleanField())
BEST_FIRST = (models.OrderBy(models.F("priority"), descending=True), UNSCANNED, models.F("shuffle"))


class Migration(migrations.Migration):
    dependencies = [
        ("annotator", "0055_audit_by_month"),
    ]

    operations = [
        migrations.RemoveIndex("task", "task_untouched"),
        migrations.RemoveIndex("task", "task_untouched_by_language"),
        migrations.AddIndex(
            "task",
            models.Index(
                models.F("project"),
                *BEST_FIRST,
                condition=models.Q(("begun", False), ("open_slots__gt", 0), ("state", "open")),
                name="task_untouched",
            ),
        ),
        migrations.AddIndex(
            "task",
            models.Index(
                models.F("project"),
                models.F("language"),
                *BEST_FIRST,
                condition=models.Q(
                    ("begun", False),
                    ("open_slots__gt", 0),
                    ("state", "open"),
                    models.Q(("language", ""), _negated=True),
                ),
                name="task_untouched_by_language",
            ),
        ),
    ]
