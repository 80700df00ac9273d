"""Tasks that were set aside before there was a queue for reviewers stand in it too."""

from django.db import migrations

FILL = "UPDATE annotator_task SET review_because = 'quarantine' WHERE state = 'quarantined' AND review_because = ''"


class Migration(migrations.Migration):
    dependencies = [("annotator", "0024_audit_is_never_truncated")]
    operations = [migrations.RunSQL(FILL, migrations.RunSQL.noop)]
