-- A CHECK cannot look into another table, so a trigger keeps slots within what the task wants.
CREATE OR REPLACE FUNCTION annotator_slot_within_wanted() RETURNS trigger LANGUAGE plpgsql AS $$
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

-- The steps are those of Assignment.TRANSITIONS. They stand in the function, which is compiled once for each connection:
-- PostgreSQL reads a condition of WHEN anew at every statement that changes the column, and each submission does.
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

-- What counts never exceeds what the task wants. It is checked at the end of the transaction, because the counters
-- follow the rows within it. The same trigger stands on annotator_task (task.sql).
CREATE OR REPLACE FUNCTION annotator_counting_within_wanted() RETURNS trigger LANGUAGE plpgsql AS $$
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
