"""Copies the project to each label and consensus: whether a project has any is asked at every look at it."""

import django.db.models.deletion
from django.db import migrations, models

# By subquery, in the order of the rows: see 0054. Without the trigger that would announce every label as changed.
FILL = """
UPDATE annotator_consensus c SET project_id = (SELECT t.project_id FROM annotator_task t WHERE t.id = c.task_id);
ALTER TABLE annotator_label DISABLE TRIGGER changed_labels_are_news;
UPDATE annotator_label l SET project_id = (
    SELECT t.project_id FROM annotator_response r JOIN annotator_task t ON t.id = r.task_id WHERE r.id = l.response_id
);
ALTER TABLE annotator_label ENABLE TRIGGER changed_labels_are_news;
"""


def copied(*, null: bool) -> models.ForeignKey:  # type: ignore[type-arg]
    return models.ForeignKey(
        to="annotator.project",
        null=null,
        on_delete=django.db.models.deletion.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        editable=False,
        related_name="+",
    )


class Migration(migrations.Migration):
    dependencies = [
        ("annotator", "0057_short_trigger_conditions"),
    ]

    operations = [
        migrations.AddField("consensus", "project", copied(null=True)),
        migrations.AddField("label", "project", copied(null=True)),
        migrations.RunSQL(FILL, migrations.RunSQL.noop),
        migrations.AlterField("consensus", "project", copied(null=False)),
        migrations.AlterField("label", "project", copied(null=False)),
        migrations.AddIndex("consensus", models.Index(fields=["project"], name="consensus_by_project")),
        migrations.AddIndex("label", models.Index(fields=["project", "id"], name="label_by_project")),
        migrations.AddIndex(
            "task",
            models.Index(
                condition=models.Q(("imported_preference__isnull", False)),
                fields=["project"],
                name="task_with_a_preference",
            ),
        ),
        # Without figures of the new columns, plans would take them for the best way to any label.
        migrations.RunSQL("ANALYZE annotator_consensus, annotator_label", migrations.RunSQL.noop),
    ]
