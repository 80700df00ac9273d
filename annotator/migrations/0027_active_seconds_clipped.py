"""Seconds of work that no clock can have measured become the nearest that one can."""

from django.db import migrations

CLIP = """
UPDATE annotator_annotation SET active_seconds = least(greatest(active_seconds, 0), 604800)
WHERE NOT active_seconds BETWEEN 0 AND 604800
"""


class Migration(migrations.Migration):
    dependencies = [("annotator", "0026_imports")]
    operations = [migrations.RunSQL(CLIP, migrations.RunSQL.noop)]
