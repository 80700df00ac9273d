-- The folder of a deleted snapshot is noted, and the light worker removes it.
CREATE OR REPLACE FUNCTION rewards_snapshot_leaves_its_folder() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO rewards_ownerlessfolder (path) SELECT OLD.path WHERE OLD.path LIKE 'snapshots/%/%';
    RETURN NULL;
END $$;
CREATE TRIGGER snapshot_leaves_its_folder AFTER DELETE ON rewards_snapshot FOR EACH ROW
    EXECUTE FUNCTION rewards_snapshot_leaves_its_folder();
