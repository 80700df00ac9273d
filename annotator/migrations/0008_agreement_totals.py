"""What is counted of agreement, and a queue of changes in place of a set of tasks."""

from typing import Any

import django.db.models.deletion
from django.db import migrations, models

MAKE = """
CREATE FUNCTION annotator_agreement_is_stale() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO annotator_staleagreement (project_id, task_id) VALUES (NEW.project_id, NEW.id);
    RETURN NULL;
END $$;
-- Ratings of tasks that are set aside, retired or gold do not count, whoever sets the state.
CREATE TRIGGER agreement_by_state AFTER UPDATE OF state ON annotator_task FOR EACH ROW
    WHEN ((OLD.state IN ('open', 'complete')) <> (NEW.state IN ('open', 'complete')))
    EXECUTE FUNCTION annotator_agreement_is_stale();

CREATE FUNCTION annotator_agreement_has_lost() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO annotator_staleagreement (project_id, task_id)
        SELECT project_id, task_id FROM annotator_countedtask WHERE task_id = OLD.id;
    RETURN NULL;
END $$;
CREATE TRIGGER agreement_of_deleted AFTER DELETE ON annotator_task FOR EACH ROW
    EXECUTE FUNCTION annotator_agreement_has_lost();

-- What is packed already, or too small to: compressing would cost more than it saves.
ALTER TABLE annotator_agreementtotal ALTER COLUMN cells SET STORAGE EXTERNAL;
ALTER TABLE annotator_countedtask ALTER COLUMN ratings SET STORAGE EXTERNAL;

INSERT INTO annotator_staleagreement (project_id, task_id)
    SELECT DISTINCT t.project_id, t.id
    FROM annotator_task t JOIN annotator_assignment s ON s.task_id = t.id
    JOIN annotator_annotation a ON a.assignment_id = s.id;
"""
DROP = """
DROP TRIGGER agreement_of_deleted ON annotator_task;
DROP FUNCTION annotator_agreement_has_lost();
DROP TRIGGER agreement_by_state ON annotator_task;
DROP FUNCTION annotator_agreement_is_stale();
"""


def naming(to: str) -> Any:
    """A column that may outlive what it names."""
    nothing = django.db.models.deletion.DO_NOTHING
    return models.ForeignKey(to=to, related_name="+", on_delete=nothing, db_constraint=False, db_index=False)


class Migration(migrations.Migration):
    dependencies = [("annotator", "0007_held_by_triggers")]

    operations = [
        migrations.DeleteModel(name="StaleAgreement"),
        migrations.CreateModel(
            name="StaleAgreement",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("project", naming("annotator.project")),
                ("task", naming("annotator.task")),
            ],
            options={"indexes": [models.Index(fields=["project", "id"], name="stale_by_project")]},
        ),
        migrations.CreateModel(
            name="AgreementState",
            fields=[
                (
                    "project",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="agreement_state",
                        serialize=False,
                        to="annotator.project",
                    ),
                ),
                ("attributes", models.JSONField(default=list)),
                ("refreshed_at", models.DateTimeField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name="AgreementTotal",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("project", "Project"),
                            ("bucket", "Bucket"),
                            ("week", "Week"),
                            ("rater", "Rater"),
                            ("pair", "Pair"),
                        ],
                        max_length=8,
                    ),
                ),
                ("one", models.BigIntegerField(default=0)),
                ("other", models.BigIntegerField(default=0)),
                ("shared", models.IntegerField(default=0)),
                ("cells", models.BinaryField()),
                (
                    "project",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="agreement_totals",
                        to="annotator.project",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["project", "kind", "-shared"], name="total_by_shared")],
                "constraints": [
                    models.UniqueConstraint(fields=["project", "kind", "one", "other"], name="one_total_of_each_kind")
                ],
            },
        ),
        migrations.CreateModel(
            name="CountedTask",
            fields=[
                (
                    "task",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to="annotator.task",
                    ),
                ),
                ("ratings", models.BinaryField()),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="annotator.project"
                    ),
                ),
            ],
        ),
        migrations.RunSQL(MAKE, DROP),
    ]
