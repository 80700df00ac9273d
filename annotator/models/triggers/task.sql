-- A task goes to the end of the line when it is begun and when it gets room again: whoever has looked past its old
-- place has to see it anew.
-- Conditions that are long stand in the functions, as in assignment.sql.
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

-- Ratings of tasks that are set aside, retired or gold do not count towards agreement, whoever sets the state.
CREATE OR REPLACE FUNCTION annotator_agreement_is_stale() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (OLD.state IN ('open', 'complete')) <> (NEW.state IN ('open', 'complete')) THEN
        INSERT INTO annotator_staleagreement (project_id, task_id) VALUES (NEW.project_id, NEW.id);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER agreement_by_state AFTER UPDATE OF state ON annotator_task FOR EACH ROW
    WHEN (OLD.state <> NEW.state) EXECUTE FUNCTION annotator_agreement_is_stale();

-- A deleted task's ratings are taken out of what was counted.
CREATE OR REPLACE FUNCTION annotator_agreement_has_lost() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO annotator_staleagreement (project_id, task_id)
        SELECT project_id, task_id FROM annotator_countedtask WHERE task_id = OLD.id;
    RETURN NULL;
END $$;
CREATE TRIGGER agreement_of_deleted AFTER DELETE ON annotator_task FOR EACH ROW
    EXECUTE FUNCTION annotator_agreement_has_lost();

-- Lowering the number of ratings wanted must not leave more that count. The function stands in assignment.sql.
CREATE CONSTRAINT TRIGGER counting_within_wanted AFTER UPDATE OF slots_wanted ON annotator_task
    DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.slots_wanted < OLD.slots_wanted) EXECUTE FUNCTION annotator_counting_within_wanted();

-- A task is found by its words (response.sql): they go when a text changes, and with the task.
CREATE OR REPLACE FUNCTION annotator_task_words_have_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM annotator_taskwords WHERE task_id = NEW.id;
    INSERT INTO annotator_stalewords (task_id) VALUES (NEW.id);
    RETURN NULL;
END $$;
CREATE TRIGGER words_of_changed_task AFTER UPDATE OF conversation, language ON annotator_task
    FOR EACH ROW WHEN (OLD.conversation <> NEW.conversation OR OLD.language <> NEW.language)
    EXECUTE FUNCTION annotator_task_words_have_changed();
CREATE OR REPLACE FUNCTION annotator_words_are_gone() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM annotator_taskwords w USING gone WHERE w.task_id = gone.id;
    RETURN NULL;
END $$;
CREATE TRIGGER words_of_deleted_task AFTER DELETE ON annotator_task REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION annotator_words_are_gone();

-- Webhooks are told of tasks that are complete, set aside or in need of a reviewer, whoever made them so. Where there is
-- no webhook this costs a look at an empty table, and only when a task changes its state.
CREATE OR REPLACE FUNCTION annotator_task_is_news() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE what jsonb;
BEGIN
    IF NOT EXISTS (SELECT FROM annotator_webhook w WHERE w.project_id = NEW.project_id AND w.active) THEN
        RETURN NULL;
    END IF;
    what := jsonb_build_object(
        'task', NEW.id, 'external_id', NEW.external_id, 'state', NEW.state, 'annotations', NEW.done
    );
    IF NEW.state <> OLD.state AND NEW.state IN ('complete', 'quarantined') THEN
        PERFORM annotator_announce(
            NEW.project_id, CASE NEW.state WHEN 'complete' THEN 'task.completed' ELSE 'task.quarantined' END, what
        );
    END IF;
    IF NEW.review_reason <> OLD.review_reason AND NEW.review_reason IN ('dropped', 'safety', 'unlikely', 'silent') THEN
        PERFORM annotator_announce(
            NEW.project_id, 'task.disputed', what || jsonb_build_object('because', NEW.review_reason)
        );
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER task_is_news AFTER UPDATE OF state, review_reason ON annotator_task FOR EACH ROW
    WHEN (NEW.state <> OLD.state OR NEW.review_reason <> OLD.review_reason)
    EXECUTE FUNCTION annotator_task_is_news();
