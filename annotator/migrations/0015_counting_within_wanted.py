"""PostgreSQL itself refuses work that counts without a slot, and more of it than a task wants."""

from django.db import migrations, models

# Deferred to the end of the transaction: in its course the counters follow the rows.
MAKE = """
CREATE FUNCTION annotator_counting_within_wanted() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE task bigint;
BEGIN
    IF TG_TABLE_NAME = 'annotator_task' THEN task := NEW.id; ELSE task := NEW.task_id; END IF;
    IF (SELECT count(*) FROM annotator_assignment s WHERE s.task_id = task AND s.state = 'submitted' AND s.counts AND s.slot IS NOT NULL)
        > (SELECT slots_wanted FROM annotator_task WHERE id = task)
    THEN
        RAISE EXCEPTION 'more annotations of task % count than it wants', task
            USING ERRCODE = 'check_violation', CONSTRAINT = 'counting_within_wanted';
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER counting_within_wanted AFTER INSERT OR UPDATE OF state, counts, slot ON annotator_assignment
    DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.state = 'submitted' AND NEW.slot IS NOT NULL) EXECUTE FUNCTION annotator_counting_within_wanted();
CREATE CONSTRAINT TRIGGER counting_within_wanted AFTER UPDATE OF slots_wanted ON annotator_task
    DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.slots_wanted < OLD.slots_wanted) EXECUTE FUNCTION annotator_counting_within_wanted();
"""
DROP = """
DROP TRIGGER counting_within_wanted ON annotator_task;
DROP TRIGGER counting_within_wanted ON annotator_assignment;
DROP FUNCTION annotator_counting_within_wanted();
"""


class Migration(migrations.Migration):
    dependencies = [("annotator", "0014_slots_for_what_counts")]
    operations = [
        migrations.AddConstraint(
            model_name="assignment",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("state", "submitted"), _negated=True),
                    ("counts", False),
                    ("slot__isnull", False),
                    ("response_order", []),
                    _connector="OR",
                ),
                name="what_counts_holds_a_slot",
            ),
        ),
        migrations.AddConstraint(
            model_name="assignment",
            constraint=models.CheckConstraint(
                condition=models.Q(("extra", False), ("counts", False), _connector="OR"),
                name="an_extra_does_not_count",
            ),
        ),
        migrations.RunSQL(MAKE, DROP),
    ]
