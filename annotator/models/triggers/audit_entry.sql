-- An entry of the audit is never changed, deleted or emptied away, not even by the table's owner.
CREATE OR REPLACE FUNCTION annotator_audit_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'audit entries are never changed or deleted'
        USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'audit_is_append_only';
END $$;
CREATE TRIGGER audit_is_append_only BEFORE UPDATE OR DELETE ON annotator_auditentry
    FOR EACH ROW EXECUTE FUNCTION annotator_audit_is_append_only();
CREATE TRIGGER audit_is_never_truncated BEFORE TRUNCATE ON annotator_auditentry
    FOR EACH STATEMENT EXECUTE FUNCTION annotator_audit_is_append_only();
