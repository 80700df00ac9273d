"""Moves long conditions of triggers into their functions, which each connection compiles once.

PostgreSQL reads a condition of WHEN anew at every statement that changes the trigger's columns.
"""

from django.db import migrations

DROP = """
DROP TRIGGER legal_transition ON annotator_assignment;
DROP TRIGGER task_to_end_of_line ON annotator_task;
DROP TRIGGER agreement_by_state ON annotator_task;
DROP TRIGGER task_is_news ON annotator_task;
"""
SHORT = """
CREATE OR REPLACE FUNCTION annotator_refuse_transition() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (OLD.state, NEW.state) NOT IN (
        ('leased', 'submitted'),
        ('leased', 'skipped'),
        ('leased', 'released'),
        ('leased', 'expired'),
        ('expired', 'leased'),
        ('expired', 'submitted'),
        ('expired', 'skipped'),
        ('released', 'leased'),
        ('released', 'submitted'),
        ('released', 'skipped'),
        ('skipped', 'leased'),
        ('submitted', 'skipped')
    ) THEN
        RAISE EXCEPTION 'legal_transition: an assignment that is % cannot become %', OLD.state, NEW.state
            USING ERRCODE = 'check_violation', CONSTRAINT = 'legal_transition';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER legal_transition BEFORE UPDATE OF state ON annotator_assignment
    FOR EACH ROW WHEN (OLD.state <> NEW.state) EXECUTE FUNCTION annotator_refuse_transition();
CREATE OR REPLACE FUNCTION annotator_task_to_end_of_line() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.state = 'open' AND NEW.open_slots < NEW.slots_wanted
        AND (OLD.state <> 'open' OR NEW.open_slots > OLD.open_slots OR OLD.open_slots = OLD.slots_wanted)
    THEN
        NEW.line := nextval('annotator_task_line_seq');
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER task_to_end_of_line BEFORE UPDATE OF state, slots_wanted, open_slots ON annotator_task
    FOR EACH ROW WHEN (NEW.open_slots > 0) EXECUTE FUNCTION annotator_task_to_end_of_line();
CREATE OR REPLACE FUNCTION annotator_agreement_is_stale() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (OLD.state IN ('open', 'complete')) <> (NEW.state IN ('open', 'complete')) THEN
        INSERT INTO annotator_staleagreement (project_id, task_id) VALUES (NEW.project_id, NEW.id);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER agreement_by_state AFTER UPDATE OF state ON annotator_task FOR EACH ROW
    WHEN (OLD.state <> NEW.state) EXECUTE FUNCTION annotator_agreement_is_stale();
CREATE TRIGGER task_is_news AFTER UPDATE OF state, review_because ON annotator_task FOR EACH ROW
    WHEN (NEW.state <> OLD.state OR NEW.review_because <> OLD.review_because)
    EXECUTE FUNCTION annotator_task_is_news();
"""
LONG = """
CREATE OR REPLACE FUNCTION annotator_refuse_transition() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'legal_transition: an assignment that is % cannot become %', OLD.state, NEW.state
        USING ERRCODE = 'check_violation', CONSTRAINT = 'legal_transition';
END $$;
CREATE TRIGGER legal_transition BEFORE UPDATE OF state ON annotator_assignment
    FOR EACH ROW WHEN (OLD.state <> NEW.state AND (OLD.state, NEW.state) NOT IN (
        ('leased', 'submitted'),
        ('leased', 'skipped'),
        ('leased', 'released'),
        ('leased', 'expired'),
        ('expired', 'leased'),
        ('expired', 'submitted'),
        ('expired', 'skipped'),
        ('released', 'leased'),
        ('released', 'submitted'),
        ('released', 'skipped'),
        ('skipped', 'leased'),
        ('submitted', 'skipped')
    )) EXECUTE FUNCTION annotator_refuse_transition();
CREATE OR REPLACE FUNCTION annotator_task_to_end_of_line() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.line := nextval('annotator_task_line_seq');
    RETURN NEW;
END $$;
CREATE TRIGGER task_to_end_of_line BEFORE UPDATE OF state, slots_wanted, open_slots ON annotator_task
    FOR EACH ROW WHEN (
        NEW.state = 'open' AND NEW.open_slots > 0 AND NEW.open_slots < NEW.slots_wanted
        AND (OLD.state <> 'open' OR NEW.open_slots > OLD.open_slots OR OLD.open_slots = OLD.slots_wanted)
    ) EXECUTE FUNCTION annotator_task_to_end_of_line();
CREATE OR REPLACE FUNCTION annotator_agreement_is_stale() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO annotator_staleagreement (project_id, task_id) VALUES (NEW.project_id, NEW.id);
    RETURN NULL;
END $$;
CREATE TRIGGER agreement_by_state AFTER UPDATE OF state ON annotator_task FOR EACH ROW
    WHEN ((OLD.state IN ('open', 'complete')) <> (NEW.state IN ('open', 'complete')))
    EXECUTE FUNCTION annotator_agreement_is_stale();
CREATE TRIGGER task_is_news AFTER UPDATE OF state, review_because ON annotator_task FOR EACH ROW
    WHEN (
        (NEW.state <> OLD.state AND NEW.state IN ('complete', 'quarantined'))
        OR (NEW.review_because <> OLD.review_because AND NEW.review_because IN ('dropped', 'safety', 'unlikely'))
    ) EXECUTE FUNCTION annotator_task_is_news();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("annotator", "0056_scanned_tasks_first"),
    ]

    operations = [
        migrations.RunSQL(DROP + SHORT, DROP + LONG),
    ]
