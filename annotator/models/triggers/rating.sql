-- Evidence is of characters that the response has. Checked at the end: a redaction moves the evidence before the text.
CREATE OR REPLACE FUNCTION annotator_evidence_is_within_its_text() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (
        SELECT FROM annotator_response p, jsonb_array_elements(NEW.evidence) AS one
        WHERE p.id = NEW.response_id
            AND NOT (0 <= (one ->> 1)::int AND (one ->> 1)::int < (one ->> 2)::int
                AND (one ->> 2)::int <= char_length(p.text))
    ) THEN
        RAISE EXCEPTION 'evidence of rating % is outside the text of its response', NEW.id
            USING ERRCODE = 'check_violation', CONSTRAINT = 'evidence_is_within_its_text';
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER evidence_is_within_its_text AFTER INSERT OR UPDATE OF evidence ON annotator_rating
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.evidence <> '[]')
    EXECUTE FUNCTION annotator_evidence_is_within_its_text();
