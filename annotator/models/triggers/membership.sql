-- Whoever joins a project has a pseudonym there, whatever door they came by. The argument names the user's column.
CREATE OR REPLACE FUNCTION annotator_give_pseudonym() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- The first 12 digits of such a uuid are random.
    INSERT INTO annotator_pseudonym (user_id, project_id, name) VALUES (
        (to_jsonb(NEW) ->> TG_ARGV[0])::bigint, NEW.project_id,
        'r-' || left(translate(gen_random_uuid()::text, '-', ''), 10)
    ) ON CONFLICT (project_id, user_id) DO NOTHING;
    RETURN NULL;
END $$;
CREATE TRIGGER members_have_a_pseudonym AFTER INSERT ON annotator_membership
    FOR EACH ROW EXECUTE FUNCTION annotator_give_pseudonym('user_id');
