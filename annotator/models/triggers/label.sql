-- Webhooks are told of labels that people's ratings have made, changed or withdrawn: once for a task, by the statement.
-- Labels that came with a file are no news to whoever imported it.
CREATE OR REPLACE FUNCTION annotator_labels_are_news() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM annotator_webhook WHERE active) THEN
        RETURN NULL;
    END IF;
    PERFORM annotator_announce(t.project_id, 'label.changed', jsonb_build_object(
        'task', t.id, 'external_id', t.external_id, 'source', l.source, 'change', TG_ARGV[0], 'responses', l.responses
    ))
    FROM (
        SELECT r.task_id, c.source, count(*) AS responses FROM changed c JOIN annotator_response r ON r.id = c.response_id
        WHERE c.source <> 'imported' GROUP BY r.task_id, c.source
    ) l JOIN annotator_task t ON t.id = l.task_id;
    RETURN NULL;
END $$;
CREATE TRIGGER made_labels_are_news AFTER INSERT ON annotator_label REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION annotator_labels_are_news('made');
CREATE TRIGGER changed_labels_are_news AFTER UPDATE ON annotator_label REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION annotator_labels_are_news('changed');
CREATE TRIGGER withdrawn_labels_are_news AFTER DELETE ON annotator_label REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION annotator_labels_are_news('withdrawn');
