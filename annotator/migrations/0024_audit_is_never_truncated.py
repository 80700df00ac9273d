"""The audit cannot be emptied either, by nobody but who first drops this trigger."""

from django.db import migrations

MAKE = """
CREATE TRIGGER audit_is_never_truncated BEFORE TRUNCATE ON annotator_auditentry
    FOR EACH STATEMENT EXECUTE FUNCTION annotator_audit_is_append_only();
"""
DROP = "DROP TRIGGER audit_is_never_truncated ON annotator_auditentry;"


class Migration(migrations.Migration):
    dependencies = [("annotator", "0023_background_failures")]
    operations = [migrations.RunSQL(MAKE, DROP)]
