-- Snapshots count which of their tasks were redacted or deleted since. The lock keeps a snapshot that is being stored
-- (rewards/snapshots holds it exclusively) from missing what has just gone.
CREATE OR REPLACE FUNCTION rewards_snapshots_hold_redacted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(83121, NEW.project_id::int);
    UPDATE rewards_snapshot s SET redacted_tasks = redacted_tasks + 1, marked_at = now()
        FROM rewards_snapshottask t WHERE t.task_id = NEW.id AND s.id = t.snapshot_id;
    RETURN NULL;
END $$;
CREATE TRIGGER snapshots_hold_redacted AFTER UPDATE OF redacted_at ON annotator_task FOR EACH ROW
    WHEN (NEW.redacted_at IS DISTINCT FROM OLD.redacted_at) EXECUTE FUNCTION rewards_snapshots_hold_redacted();

CREATE OR REPLACE FUNCTION rewards_snapshots_hold_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(83121, p.project_id::int) FROM (SELECT DISTINCT project_id FROM gone) p;
    UPDATE rewards_snapshot s SET deleted_tasks = deleted_tasks + x.n, marked_at = now()
        FROM (
            SELECT t.snapshot_id, count(*) AS n FROM gone JOIN rewards_snapshottask t ON t.task_id = gone.id
            GROUP BY t.snapshot_id
        ) x WHERE s.id = x.snapshot_id;
    RETURN NULL;
END $$;
CREATE TRIGGER snapshots_hold_deleted AFTER DELETE ON annotator_task REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION rewards_snapshots_hold_deleted();
