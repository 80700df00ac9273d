-- The folder of a deleted run is noted, and the light worker removes it.
CREATE OR REPLACE FUNCTION rewards_run_leaves_its_folder() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO rewards_ownerlessfolder (path) VALUES ('runs/' || OLD.id);
    RETURN NULL;
END $$;
CREATE TRIGGER run_leaves_its_folder AFTER DELETE ON rewards_trainingrun FOR EACH ROW
    EXECUTE FUNCTION rewards_run_leaves_its_folder();
