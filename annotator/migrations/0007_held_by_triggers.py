"""The line of begun tasks, counters for what is there already, and an audit that nobody edits."""

from django.db import migrations

MAKE = """
CREATE SEQUENCE annotator_task_line_seq;

CREATE FUNCTION annotator_task_to_end_of_line() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.line := nextval('annotator_task_line_seq');
    RETURN NEW;
END $$;
-- Whenever a task is begun, or gets room again: whoever has looked past its old place has to see it anew.
CREATE TRIGGER task_to_end_of_line BEFORE UPDATE OF state, slots_wanted, open_slots ON annotator_task
    FOR EACH ROW WHEN (
        NEW.state = 'open' AND NEW.open_slots > 0 AND NEW.open_slots < NEW.slots_wanted
        AND (OLD.state <> 'open' OR NEW.open_slots > OLD.open_slots OR OLD.open_slots = OLD.slots_wanted)
    ) EXECUTE FUNCTION annotator_task_to_end_of_line();

CREATE FUNCTION annotator_audit_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'audit entries are never changed or deleted'
        USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'audit_is_append_only';
END $$;
CREATE TRIGGER audit_is_append_only BEFORE UPDATE OR DELETE ON annotator_auditentry
    FOR EACH ROW EXECUTE FUNCTION annotator_audit_is_append_only();
"""
DROP = """
DROP TRIGGER audit_is_append_only ON annotator_auditentry;
DROP FUNCTION annotator_audit_is_append_only();
DROP TRIGGER task_to_end_of_line ON annotator_task;
DROP FUNCTION annotator_task_to_end_of_line();
DROP SEQUENCE annotator_task_line_seq;
"""

FILL = """
UPDATE annotator_task t SET done = s.done FROM (
    SELECT task_id, count(*) AS done FROM annotator_assignment
    WHERE slot IS NOT NULL AND state = 'submitted' GROUP BY task_id
) s WHERE s.task_id = t.id;

UPDATE annotator_task SET line = nextval('annotator_task_line_seq')
    WHERE state = 'open' AND open_slots > 0 AND open_slots < slots_wanted;

UPDATE annotator_task SET language = left(metadata ->> 'lang', 16) WHERE jsonb_typeof(metadata -> 'lang') = 'string';

INSERT INTO annotator_tally (annotator_id, project_id, done)
    SELECT s.annotator_id, t.project_id, count(*) FROM annotator_assignment s JOIN annotator_task t ON t.id = s.task_id
    WHERE s.state = 'submitted' GROUP BY s.annotator_id, t.project_id;

INSERT INTO annotator_staleagreement (task_id)
    SELECT DISTINCT s.task_id FROM annotator_annotation a JOIN annotator_assignment s ON s.id = a.assignment_id;
"""


class Migration(migrations.Migration):
    dependencies = [("annotator", "0006_claims_review_and_audit")]
    operations = [migrations.RunSQL(MAKE, DROP), migrations.RunSQL(FILL, migrations.RunSQL.noop)]
