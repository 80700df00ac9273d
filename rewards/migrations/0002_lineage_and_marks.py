"""Where a model comes from; and which snapshots hold texts that were redacted or deleted since, kept by triggers."""

import django.db.models.deletion
from django.db import migrations, models

MAKE = """
-- Taking a snapshot holds this lock alone (rewards/snapshots.py), so that none is stored with what has just gone.
CREATE FUNCTION rewards_snapshots_hold_redacted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(83121, NEW.project_id::int);
    UPDATE rewards_snapshot s SET redacted_tasks = redacted_tasks + 1, marked_at = now()
        FROM rewards_snapshottask t WHERE t.task_id = NEW.id AND s.id = t.snapshot_id;
    RETURN NULL;
END $$;
CREATE TRIGGER snapshots_hold_redacted AFTER UPDATE OF redacted_at ON annotator_task FOR EACH ROW
    WHEN (NEW.redacted_at IS DISTINCT FROM OLD.redacted_at) EXECUTE FUNCTION rewards_snapshots_hold_redacted();

CREATE FUNCTION rewards_snapshots_hold_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(83121, p.project_id::int) FROM (SELECT DISTINCT project_id FROM gone) p;
    UPDATE rewards_snapshot s SET deleted_tasks = deleted_tasks + x.n, marked_at = now()
        FROM (
            SELECT t.snapshot_id, count(*) AS n FROM gone JOIN rewards_snapshottask t ON t.task_id = gone.id
            GROUP BY t.snapshot_id
        ) x WHERE s.id = x.snapshot_id;
    RETURN NULL;
END $$;
CREATE TRIGGER snapshots_hold_deleted AFTER DELETE ON annotator_task REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION rewards_snapshots_hold_deleted();
"""
DROP = """
DROP TRIGGER snapshots_hold_deleted ON annotator_task;
DROP FUNCTION rewards_snapshots_hold_deleted();
DROP TRIGGER snapshots_hold_redacted ON annotator_task;
DROP FUNCTION rewards_snapshots_hold_redacted();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("annotator", "0010_policy_of_the_loop"),
        ("rewards", "0001_tables_of_the_machine_half"),
    ]

    operations = [
        migrations.AddField(
            model_name="rewardmodel",
            name="parent",
            field=models.ForeignKey(
                blank=True,
                help_text="the champion it met",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="rewards.rewardmodel",
            ),
        ),
        migrations.AddField(
            model_name="snapshot",
            name="redacted_tasks",
            field=models.PositiveIntegerField(db_default=0, help_text="redacted after it was taken"),
        ),
        migrations.AddField(
            model_name="snapshot",
            name="deleted_tasks",
            field=models.PositiveIntegerField(db_default=0, help_text="deleted after it was taken"),
        ),
        migrations.AddField(
            model_name="snapshot",
            name="marked_at",
            field=models.DateTimeField(blank=True, help_text="of the last of these", null=True),
        ),
        migrations.AddField(
            model_name="snapshot",
            name="erased_at",
            field=models.DateTimeField(blank=True, help_text="its files and those of its models are gone", null=True),
        ),
        migrations.CreateModel(
            name="SnapshotTask",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "task_id", "snapshot_id", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("task_id", models.BigIntegerField()),
                (
                    "snapshot",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="seen", to="rewards.snapshot"
                    ),
                ),
            ],
        ),
        migrations.RunSQL(MAKE, DROP),
    ]
