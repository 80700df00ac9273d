-- A ranking names each response of its task once, and only tasks of three responses or more are ranked. A CHECK cannot
-- look into the table of responses.
CREATE OR REPLACE FUNCTION annotator_ranking_of_every_response() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE task bigint; ranked bigint[]; responses bigint[];
BEGIN
    IF TG_TABLE_NAME = 'annotator_annotation' THEN
        SELECT s.task_id INTO task FROM annotator_assignment s WHERE s.id = NEW.assignment_id;
    ELSE
        task := NEW.task_id;
    END IF;
    SELECT array_agg(listed.id::bigint ORDER BY listed.id::bigint) INTO ranked
        FROM jsonb_array_elements(NEW.ranking) AS tier (ids), jsonb_array_elements_text(tier.ids) AS listed (id);
    SELECT array_agg(r.id ORDER BY r.id) INTO responses FROM annotator_response r WHERE r.task_id = task;
    IF ranked IS DISTINCT FROM responses OR cardinality(responses) < 3 THEN
        RAISE EXCEPTION 'ranking_of_every_response: task % has responses %, ranked are %', task, responses, ranked
            USING ERRCODE = 'check_violation', CONSTRAINT = 'ranking_of_every_response';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER ranking_of_every_response AFTER INSERT OR UPDATE OF ranking ON annotator_adjudication
    FOR EACH ROW WHEN (NEW.ranking IS NOT NULL) EXECUTE FUNCTION annotator_ranking_of_every_response();
