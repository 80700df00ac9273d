"""Labels and releases name the version of the rubric that they were made under."""

from django.db import migrations, models

# Where there has been one version only, the default is right. Without the trigger that would announce every label as
# changed. A label of annotators is of the newest version among the annotations that make it; one of another source is
# of the version that was in force when it was made.
FILL = """
ALTER TABLE annotator_label DISABLE TRIGGER changed_labels_are_news;
UPDATE annotator_label l SET rubric_version = found.version
FROM (
    SELECT l.id, coalesce(
        CASE WHEN l.source = 'consensus'
        THEN (SELECT max(a.rubric_version) FROM annotator_annotation a WHERE a.id = ANY (c.kept))
        ELSE (
            SELECT max(b.version) FROM annotator_rubric b WHERE b.project_id = l.project_id AND b.made_at <= coalesce(
                (SELECT made_at FROM annotator_adjudication j
                 WHERE l.source = 'adjudicated' AND j.task_id = r.task_id AND j.is_current),
                l.made_at
            )
        ) END, 1) AS version
    FROM annotator_label l
    JOIN annotator_project p ON p.id = l.project_id
    JOIN annotator_rubric in_force ON in_force.id = p.rubric_id AND in_force.version > 1
    JOIN annotator_response r ON r.id = l.response_id
    LEFT JOIN annotator_consensus c ON c.task_id = r.task_id
) found
WHERE found.id = l.id AND found.version <> 1;
ALTER TABLE annotator_label ENABLE TRIGGER changed_labels_are_news;
"""


class Migration(migrations.Migration):
    dependencies = [("annotator", "0063_ratings_of_import_jobs")]

    operations = [
        migrations.AddField(
            "label",
            "rubric_version",
            models.PositiveSmallIntegerField(
                db_default=1, default=1, help_text="the newest version of the rubric among what made the label"
            ),
        ),
        migrations.RunSQL(FILL, migrations.RunSQL.noop),
        migrations.AddField(
            "release",
            "rubric_version",
            models.PositiveSmallIntegerField(
                blank=True, null=True, help_text="the rubric's version that its labels were made under; empty: all"
            ),
        ),
    ]
