"""Runs from before are not looked through again: what they noted was answered, or is still in the queue."""

from django.db import migrations

NOTED = """
UPDATE rewards_trainingrun SET unlikely_noted_at = COALESCE(finished_at, now())
WHERE id IN (SELECT run_id FROM rewards_rewardmodel)
"""


class Migration(migrations.Migration):
    dependencies = [
        ("rewards", "0009_unlikely_noted_at"),
    ]

    operations = [
        migrations.RunSQL(NOTED, migrations.RunSQL.noop),
    ]
