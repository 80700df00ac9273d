-- Writes an event for every webhook of the project that wants it, in the transaction of the change. Triggers and stages
-- call it; `data` gets the project's slug.
CREATE OR REPLACE FUNCTION annotator_announce(of_project bigint, named text, what jsonb) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE written bigint;
BEGIN
    INSERT INTO annotator_webhookdelivery (webhook_id, message, event, data, state, attempts, error)
    SELECT w.id, gen_random_uuid(), named, jsonb_build_object('project', p.slug) || what, 'waiting', 0, ''
    FROM annotator_webhook w JOIN annotator_project p ON p.id = w.project_id
    WHERE w.project_id = of_project AND w.active AND (w.events = '{}' OR named = ANY (w.events))
        AND p.deleted_at IS NULL
    ORDER BY w.id;
    GET DIAGNOSTICS written = ROW_COUNT;
    RETURN written;
END $$;
