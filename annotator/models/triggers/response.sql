-- A task is found by the words of its texts, which the light worker takes. New and changed texts are queued for it, by
-- the statement: an import writes hundreds of rows at a time.
CREATE OR REPLACE FUNCTION annotator_words_are_new() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO annotator_stalewords (task_id) SELECT DISTINCT task_id FROM written;
    RETURN NULL;
END $$;
CREATE TRIGGER words_of_new_response AFTER INSERT ON annotator_response REFERENCING NEW TABLE AS written
    FOR EACH STATEMENT EXECUTE FUNCTION annotator_words_are_new();

-- What was redacted must not be found any more, so the old words go at once.
CREATE OR REPLACE FUNCTION annotator_words_have_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM annotator_taskwords WHERE task_id = NEW.task_id;
    INSERT INTO annotator_stalewords (task_id) VALUES (NEW.task_id);
    RETURN NULL;
END $$;
CREATE TRIGGER words_of_changed_response AFTER UPDATE OF text, model ON annotator_response
    FOR EACH ROW WHEN (OLD.text <> NEW.text OR OLD.model <> NEW.model)
    EXECUTE FUNCTION annotator_words_have_changed();
