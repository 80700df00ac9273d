"""Copies the project and the annotator to each annotation: the newest ones of a project are found by an index."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

# By subquery: a join would write the rows in the order of its hash, and the rows of a task would lie far apart.
FILL = """
UPDATE annotator_annotation a SET (project_id, annotator_id) = (
    SELECT t.project_id, s.annotator_id FROM annotator_assignment s JOIN annotator_task t ON t.id = s.task_id
    WHERE s.id = a.assignment_id
)
"""
KEEP = """
CREATE FUNCTION annotator_annotation_knows_its_project() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    SELECT t.project_id, s.annotator_id INTO NEW.project_id, NEW.annotator_id
    FROM annotator_assignment s JOIN annotator_task t ON t.id = s.task_id WHERE s.id = NEW.assignment_id;
    RETURN NEW;
END $$;
CREATE TRIGGER annotation_knows_its_project BEFORE INSERT ON annotator_annotation
    FOR EACH ROW EXECUTE FUNCTION annotator_annotation_knows_its_project();
"""
FORGET = """
DROP TRIGGER annotation_knows_its_project ON annotator_annotation;
DROP FUNCTION annotator_annotation_knows_its_project();
"""


def copied(to: str, *, null: bool) -> models.ForeignKey:  # type: ignore[type-arg]
    return models.ForeignKey(
        to=to,
        null=null,
        on_delete=django.db.models.deletion.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        editable=False,
        related_name="+",
    )


class Migration(migrations.Migration):
    dependencies = [
        ("annotator", "0053_drop_redundant_indexes"),
    ]

    operations = [
        migrations.AddField("annotation", "project", copied("annotator.project", null=True)),
        migrations.AddField("annotation", "annotator", copied(settings.AUTH_USER_MODEL, null=True)),
        migrations.RunSQL(KEEP, FORGET),
        migrations.RunSQL(FILL, migrations.RunSQL.noop),
        migrations.AlterField("annotation", "project", copied("annotator.project", null=False)),
        migrations.AlterField("annotation", "annotator", copied(settings.AUTH_USER_MODEL, null=False)),
        migrations.AddIndex(
            "annotation",
            models.Index(
                condition=models.Q(("is_current", True)), fields=["project", "id"], name="annotation_by_project"
            ),
        ),
        migrations.AddIndex(
            "annotation",
            models.Index(
                condition=models.Q(("is_current", True)),
                fields=["project", "annotator", "id"],
                name="annotation_by_annotator",
            ),
        ),
        migrations.AddIndex(
            "annotation",
            models.Index(
                condition=models.Q(("is_current", True), ("ranking__isnull", False)),
                fields=["project"],
                name="annotation_with_a_ranking",
            ),
        ),
    ]
