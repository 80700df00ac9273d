"""Brings a database of commit 6be395a0 to what 0001_initial makes; it changes nothing in a new database."""

from django.db import migrations

from annotator.infrastructure.db import triggers

COLUMNS = """
ALTER TABLE rewards_snapshotjob ADD COLUMN IF NOT EXISTS tries smallint NOT NULL DEFAULT 0 CHECK (tries >= 0);
ALTER TABLE rewards_snapshotjob ALTER COLUMN tries DROP DEFAULT;
ALTER TABLE rewards_rewardmodel ADD COLUMN IF NOT EXISTS score_precision varchar(10) NOT NULL DEFAULT '';
ALTER TABLE rewards_evaluationjob ADD COLUMN IF NOT EXISTS progress jsonb NOT NULL DEFAULT '{}';
ALTER TABLE rewards_evaluationjob ALTER COLUMN progress DROP DEFAULT;
"""


class Migration(migrations.Migration):
    dependencies = [("rewards", "0001_initial"), ("annotator", "0002_databases_of_before")]
    operations = [migrations.RunSQL(COLUMNS, migrations.RunSQL.noop), triggers.installed(triggers.REWARDS)]
