"""PostgreSQL itself refuses a slot beyond those that the task wants: a CHECK cannot look into another table."""

from django.db import migrations

MAKE = """
CREATE FUNCTION annotator_slot_within_wanted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- A slot that somebody holds already stays theirs when fewer are wanted later.
    IF (TG_OP = 'INSERT' OR NEW.slot IS DISTINCT FROM OLD.slot) AND NEW.slot > (SELECT slots_wanted FROM annotator_task WHERE id = NEW.task_id) THEN
        RAISE EXCEPTION 'slot % is more than task % wants', NEW.slot, NEW.task_id
            USING ERRCODE = 'check_violation', CONSTRAINT = 'slot_within_wanted';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER slot_within_wanted BEFORE INSERT OR UPDATE OF slot, task_id ON annotator_assignment
    FOR EACH ROW WHEN (NEW.slot IS NOT NULL) EXECUTE FUNCTION annotator_slot_within_wanted();
"""
DROP = """
DROP TRIGGER slot_within_wanted ON annotator_assignment;
DROP FUNCTION annotator_slot_within_wanted();
"""


class Migration(migrations.Migration):
    dependencies = [("annotator", "0002_rubrics")]
    operations = [migrations.RunSQL(MAKE, DROP)]
