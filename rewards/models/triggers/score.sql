-- A model knows how many responses it has scored: counted anew for each list of models, that would read every score.
-- The rows are locked in the order of their ids first, as two deletions may take scores of the same models.
CREATE OR REPLACE FUNCTION rewards_scores_are_counted() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE sign int := CASE TG_OP WHEN 'INSERT' THEN 1 ELSE -1 END;
BEGIN
    PERFORM FROM rewards_rewardmodel m WHERE m.id IN (SELECT reward_model_id FROM changed)
        ORDER BY m.id FOR NO KEY UPDATE;
    UPDATE rewards_rewardmodel m SET scored = m.scored + sign * x.number
        FROM (SELECT reward_model_id, count(*) AS number FROM changed GROUP BY 1) x WHERE m.id = x.reward_model_id;
    RETURN NULL;
END $$;
CREATE TRIGGER new_scores_are_counted AFTER INSERT ON rewards_score REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION rewards_scores_are_counted();
CREATE TRIGGER deleted_scores_are_counted AFTER DELETE ON rewards_score REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION rewards_scores_are_counted();
